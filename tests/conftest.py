"""Real servers for every test: the embedded pair, or those that STEERBOARD_DATABASE_URL / STEERBOARD_REDIS_URL name.

A migrated template database is made once in each test process and cloned for each test. On a named Redis the tests use
the databases 8 and up, one for each test process, and empty them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from steerboard.accounts import service as accounts
from steerboard.accounts.tables import Project
from steerboard.platform import migrations
from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import make_engine, make_sessions, new_id, transaction
from steerboard.platform.embedded import EmbeddedServers
from steerboard.platform.redis_url import connect
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.web import create_app

if TYPE_CHECKING:
    from s3_server import S3Server

_FIRST_REDIS_DATABASE = 8


@dataclass(frozen=True)
class Servers:
    """`admin_url` may create databases; `template` is one that is migrated and never used."""

    admin_url: str
    redis_url: str
    template: str

    def url_of(self, database: str) -> str:
        return make_url(self.admin_url).set(database=database).render_as_string(hide_password=False)


def _admin(url: str, *statements: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))


def _make_template(admin_url: str) -> str:
    name = f"steerboard_test_{new_id().hex[-12:]}"
    _admin(admin_url, f"CREATE DATABASE {name}")
    engine = make_engine(make_url(admin_url).set(database=name).render_as_string(hide_password=False))
    migrations.migrate(engine)
    engine.dispose()
    return name


def _with_redis_database(url: str, number: int) -> str:
    parts = urlsplit(url)
    if parts.scheme.startswith("redis") and not parts.scheme.endswith("socket"):
        return urlunsplit(parts._replace(path=f"/{number}"))
    return f"{url.partition('?')[0]}?db={number}"


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    database_url = Settings().database_url
    redis_url = os.environ.get("STEERBOARD_REDIS_URL", "")
    home = Path(tempfile.mkdtemp(prefix="sb-"))
    embedded = EmbeddedServers(home, quick=True)
    embedded.start(postgres=not database_url, valkey=not redis_url)
    if redis_url:
        number = _FIRST_REDIS_DATABASE + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        redis_url = _with_redis_database(redis_url, number)
    admin_url = database_url or embedded.database_url
    try:
        template = _make_template(admin_url)
        yield Servers(admin_url, redis_url or embedded.redis_url, template)
        _admin(admin_url, f"DROP DATABASE {template} WITH (FORCE)")
    finally:
        embedded.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def database_url(servers: Servers) -> Iterator[str]:
    """A migrated database of its own."""
    name = f"{servers.template}_{new_id().hex[-8:]}"
    _admin(servers.admin_url, f"CREATE DATABASE {name} TEMPLATE {servers.template}")
    yield servers.url_of(name)
    _admin(servers.admin_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def redis_url(servers: Servers) -> str:
    """An empty Redis."""
    with connect(servers.redis_url) as client:
        client.flushdb()
    return servers.redis_url


@pytest.fixture
def settings(home: Path, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Also in the environment, for `get_settings` and for processes that a test starts."""
    monkeypatch.setenv("STEERBOARD_HOME", str(home))
    monkeypatch.setenv("STEERBOARD_DATABASE_URL", database_url)
    monkeypatch.setenv("STEERBOARD_REDIS_URL", redis_url)
    monkeypatch.setenv("STEERBOARD_ARTIFACT_URL", f"file://{home / 'artifacts'}")
    get_settings.cache_clear()
    yield get_settings()
    get_settings.cache_clear()


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    made = make_engine(settings.database_url)
    yield made
    made.dispose()


@pytest.fixture
def sessions(engine: Engine) -> sessionmaker[Session]:
    return make_sessions(engine)


@pytest.fixture
def project(sessions: sessionmaker[Session]) -> Project:
    """The project `default`, owned by the local person."""
    with transaction(sessions) as session:
        found, _ = accounts.ensure_default(session, held_out_fraction=0.1)
        return found


@pytest.fixture
def store(settings: Settings) -> ArtifactStore:
    return ArtifactStore(settings.artifact_url)


@pytest.fixture
def app(settings: Settings, sessions: sessionmaker[Session], project: Project) -> FastAPI:
    return create_app(settings, sessions=sessions)


@pytest.fixture
def token(sessions: sessionmaker[Session], project: Project) -> str:
    """A bearer token for all projects with every scope."""
    with transaction(sessions) as session:
        _, user = accounts.ensure_default(session, held_out_fraction=0.1)
        return accounts.replace_local_token(session, user, "test")


@pytest.fixture
def client(app: FastAPI, token: str) -> Iterator[TestClient]:
    """Signed in with `token`. Below the project: `/api/v1/projects/default/...`."""
    with TestClient(app, headers={"Authorization": f"Bearer {token}"}) as signed_in:
        yield signed_in


@pytest.fixture
def broker(redis_url: str) -> Iterator[redis.Redis]:
    with connect(redis_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def running_s3() -> Iterator[S3Server]:
    # Imported here, for most test processes need no S3.
    from s3_server import S3Server

    server = S3Server().start()
    yield server
    server.stop()


@pytest.fixture
def s3(running_s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """An empty bucket that this process, and those that it starts, find by the usual variables."""
    running_s3.clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", running_s3.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return running_s3
