"""Everything that `steerboard up` starts, in order, and stops in reverse order.

Servers and workers run under guardians (`steerboard_contracts.guardian`), the API in a thread of this process; so
nothing outlives this process, whichever way it ends.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

import orjson
import uvicorn
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service as accounts
from steerboard.app import background
from steerboard.app.connections import server_config
from steerboard.app.main import create_app
from steerboard.cli.client import write_client_file
from steerboard.cli.server.listening import bind
from steerboard.platform import migrations
from steerboard.platform.concurrency import CONNECTIONS
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.processes.child_process import Guarded, GuardedSpec, ServerFailed
from steerboard.platform.processes.embedded import EmbeddedServers
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage import log_files, scratch
from steerboard.platform.storage.home import open_home
from steerboard_contracts.errors import SteerboardError

log = logging.getLogger("steerboard.up")

_WATCH_SECONDS = 1.0
_WORKER_STOP_SECONDS = 30.0
_API_STOP_SECONDS = 5
LOCAL_TOKEN = "local"


@dataclass(frozen=True)
class LaunchOptions:
    """`port` 0 takes any free one. `workers` 0 starts none, otherwise an interactive one is added."""

    home: Path
    host: str
    port: int
    workers: int = 1
    pool: str = "default"


class HomeInUse(SteerboardError):
    """Another `steerboard up` runs on the same home."""

    code = "home_in_use"
    status = 409
    title = "The home is in use"


class Platform:
    """A running Steerboard: `with Platform(options) as platform: ... platform.url`."""

    def __init__(self, options: LaunchOptions) -> None:
        self.options = options
        self.url = ""
        self.sign_in_url = ""
        self.settings = get_settings()
        self.ended = threading.Event()
        self._lock: IO[str] | None = None
        self._embedded: EmbeddedServers | None = None
        self._workers: list[Guarded] = []
        self._server: uvicorn.Server | None = None
        self._api: threading.Thread | None = None
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)

    def __enter__(self) -> Platform:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Workers first (their runs go back to the queue), then the API, then the servers."""
        self._stopping.set()
        if self._watcher.is_alive():
            self._watcher.join()
        stoppers = [threading.Thread(target=worker.stop) for worker in self._workers]
        for stopper in stoppers:
            stopper.start()
        if self._server is not None and self._api is not None:
            self._server.config.app.state.stopping.set()
            self._server.should_exit = True
            self._api.join()
        for stopper in stoppers:
            stopper.join()
        if self._embedded is not None:
            self._embedded.stop()
        if self._lock is not None:
            self._lock.close()
        self._workers, self._server, self._embedded, self._lock = [], None, None, None

    def _start(self) -> None:
        home = self.options.home
        open_home(home)
        self._lock = _lock_home(home)
        scratch.sweep()
        listener = bind(self.options.host, self.options.port)
        port = listener.getsockname()[1]
        shown = "127.0.0.1" if self.options.host in ("0.0.0.0", "::") else self.options.host
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
        self._start_servers()
        self.settings = get_settings()
        engine = make_engine(self.settings.database_url, CONNECTIONS)
        migrations.migrate(engine)
        sessions = make_sessions(engine)
        with transaction(sessions) as session:
            _, user = accounts.ensure_default(session, self.settings.held_out_fraction)
            token = accounts.replace_local_token(session, user, LOCAL_TOKEN)
            code, _ = accounts.create_sign_in_link(session, user.id)
        self.sign_in_url = f"{self.url}/sign-in/{code}"
        self._start_api(sessions, listener)
        write_client_file(home, self.url, token)
        _note_owner(self._lock, self.url)
        self._workers = [self._start_worker(number) for number in range(self.options.workers)]
        if self._workers:
            self._workers.append(self._start_worker(len(self._workers)))
        self._watcher.start()

    def _start_servers(self) -> None:
        """Embedded ones for the URLs that are not set; then everything, also in child processes, finds them set."""
        os.environ["STEERBOARD_HOME"] = str(self.options.home)
        os.environ["STEERBOARD_HOST"] = self.options.host
        settings = Settings()
        os.environ["STEERBOARD_ARTIFACT_URL"] = settings.artifact_url
        os.environ.setdefault("STEERBOARD_PUBLIC_URL", self.url)
        if settings.environment != "production" and (here := os.getcwd()) != "/":
            os.environ.setdefault("STEERBOARD_MODEL_ROOTS", here)
        needs_database, needs_redis = not settings.database_url, not settings.redis_url
        if needs_database or needs_redis:
            self._embedded = EmbeddedServers(self.options.home)
            self._embedded.start(postgres=needs_database, valkey=needs_redis)
            if needs_database:
                os.environ["STEERBOARD_DATABASE_URL"] = self._embedded.database_url
            if needs_redis:
                os.environ["STEERBOARD_REDIS_URL"] = self._embedded.redis_url
        get_settings.cache_clear()

    def _start_api(self, sessions: sessionmaker[Session], listener: socket.socket) -> None:
        app = create_app(
            self.settings, sessions=sessions, background=lambda app: background.start(app, sessions, self.settings)
        )
        config = server_config(app, log_level="warning", timeout_graceful_shutdown=_API_STOP_SECONDS)
        self._server = uvicorn.Server(config)
        self._api = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, name="api", daemon=True)
        self._api.start()
        while not self._server.started:
            if not self._api.is_alive():
                raise ServerFailed("the API did not start", hint="The log above has the reason.")
            time.sleep(0.02)

    def _start_worker(self, number: int) -> Guarded:
        """The last one, after those of the pool, serves the playground."""
        name, command = f"worker-{number + 1}", ["steerboard_workers.worker", "--pool", self.options.pool]
        if number == self.options.workers:
            name, command = "interactive-worker", ["steerboard_workers.interactive.worker"]
        return Guarded(
            GuardedSpec(
                name=name.replace("-", " "),
                command=[sys.executable, "-m", *command],
                log=_log_folder(self.options.home) / f"{name}.log",
                stop=[(signal.SIGTERM, _WORKER_STOP_SECONDS)],
                # The first to take a run may not see the others yet.
                env={"STEERBOARD_MACHINE_WORKERS": str(max(self.options.workers, self.settings.machine_workers))},
            )
        )

    def _watch(self) -> None:
        """Start again what ended by itself. When that fails, `ended` is set."""
        while not self._stopping.wait(_WATCH_SECONDS):
            log_files.trim(self.options.home / "logs")
            try:
                for name in self._embedded.revive() if self._embedded else []:
                    log.error("%s had exited and was restarted", name)
                for place, worker in enumerate(self._workers):
                    if worker.status() is not None:
                        log.error("%s; it is being restarted", worker.failure())
                        self._workers[place] = self._start_worker(place)
            except SteerboardError as error:
                log.error("%s", error)
                self.ended.set()
                return
            if self._api is not None and not self._api.is_alive():
                log.error("the API has ended")
                self.ended.set()
                return


def _log_folder(home: Path) -> Path:
    folder = home / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _lock_home(home: Path) -> IO[str]:
    file = (home / "up.lock").open("a+", errors="replace")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        where = _whereabouts(file.read())
        file.close()
        raise HomeInUse(
            f"`steerboard up` already runs on {home}{where}",
            hint="Use that one, stop it, or choose another folder with --home.",
        ) from None
    file.truncate(0)
    return file


def _whereabouts(noted: str) -> str:
    """The place of the `up` that holds the lock; empty before it has written it, or if the file is damaged."""
    try:
        owner = orjson.loads(noted)
        return f" at {owner['url']} (process {owner['pid']})"
    except (ValueError, TypeError, KeyError):
        return ""


def _note_owner(lock: IO[str], url: str) -> None:
    lock.truncate(0)
    lock.write(orjson.dumps({"pid": os.getpid(), "url": url}).decode())
    lock.flush()
