"""A `steerboard up` of the benchmark's own: real servers, workers on request, data in a folder that goes with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
from sqlalchemy import make_url

from steerboard.platform.processes.embedded import EmbeddedServers
from steerboard.platform.settings import Settings

_START_SECONDS = 120.0
_STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Bench:
    """A running platform. `database_url` is for psycopg and libpq, `redis_url` as `platform.redis_url` takes it."""

    home: Path
    url: str
    sign_in: str
    pid: int
    token: str
    database_url: str
    redis_url: str

    def client(self) -> httpx.Client:
        """One keep-alive connection, signed in, below the project `default`."""
        return httpx.Client(
            base_url=f"{self.url}/api/v1/projects/default/",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=None,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=600),
        )

    def connect(self, *, autocommit: bool = False) -> psycopg.Connection:
        return psycopg.connect(self.database_url, autocommit=autocommit, application_name="bench-web")

    def beside(self, database: str) -> str:
        """The URL of another database on the same server."""
        return make_url(self.database_url).set(database=database).render_as_string(hide_password=False)


@contextmanager
def platform(home: Path, *, workers: int = 0) -> Iterator[Bench]:
    """Started, and stopped at the end. On a server that STEERBOARD_DATABASE_URL names, with a database of its own."""
    home.mkdir(parents=True, exist_ok=True)
    given = Settings()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    environment["STEERBOARD_HOME"] = str(home)
    database = f"steerboard_bench_{uuid.uuid4().hex[:8]}"
    if given.database_url:
        environment["STEERBOARD_DATABASE_URL"] = (
            make_url(given.database_url).set(database=database).render_as_string(hide_password=False)
        )
        _administer(given.database_url, f"CREATE DATABASE {database}")
    if given.redis_url:
        environment["STEERBOARD_REDIS_URL"] = given.redis_url
    embedded = EmbeddedServers(home)
    try:
        with _up(home, environment, workers) as ready:
            yield Bench(
                home=home,
                url=ready["url"],
                sign_in=ready["sign_in"],
                pid=int(ready["pid"]),
                token=json.loads((home / "client.json").read_text())["token"],
                database_url=_libpq(environment.get("STEERBOARD_DATABASE_URL") or embedded.database_url),
                redis_url=given.redis_url or embedded.redis_url,
            )
    finally:
        if given.database_url:
            _administer(given.database_url, f"DROP DATABASE {database} WITH (FORCE)")


@contextmanager
def _up(home: Path, environment: dict[str, str], workers: int) -> Iterator[dict[str, str]]:
    ready = home / "ready.json"
    ready.unlink(missing_ok=True)
    command = [str(Path(sys.executable).with_name("steerboard")), "up", "--home", str(home), "--port", "0"]
    command += ["--workers", str(workers), "--ready-file", str(ready)]
    with (home / "up.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not ready.is_file():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"`steerboard up` did not start:\n{(home / 'up.log').read_text()[-2000:]}")
            time.sleep(0.1)
        yield json.loads(ready.read_text())
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _libpq(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _administer(url: str, statement: str) -> None:
    with psycopg.connect(_libpq(url), autocommit=True) as connection:
        connection.execute(statement)
