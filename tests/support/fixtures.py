"""Real servers for every test: the embedded pair, or those that STEERBOARD_DATABASE_URL / STEERBOARD_REDIS_URL name.

A migrated template database is made once in each test process and cloned once for its tests, each of which leaves it
empty. On a named Redis the tests use the databases 8 and up, one for each test process, and empty them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import certifi
import pytest
import redis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service as accounts
from steerboard.accounts.tables import Project
from steerboard.app.main import attach, create_app
from steerboard.app.wiring import wire
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.events.redis_url import connect
from steerboard.platform.processes.embedded import EmbeddedServers
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage.artifacts import ArtifactStore
from support.processes.surroundings import PASSING
from support.servers.app_client import AppClient
from support.servers.shared_database import Servers, SharedDatabase, administer, make_template

wire()

if TYPE_CHECKING:
    from support.servers.s3_server import S3Server

_FIRST_REDIS_DATABASE = 8
# By which the test client calls a server.
os.environ["STEERBOARD_ALLOWED_HOSTS"] = "testserver test"


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
        template = make_template(admin_url)
        yield Servers(admin_url, redis_url or embedded.redis_url, template)
        administer(admin_url, f"DROP DATABASE {template} WITH (FORCE)")
    finally:
        embedded.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def few_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test asks a server that an authority vouches for. To read all authorities takes every HTTP client 30 ms."""
    file = tmp_path_factory.mktemp("authorities") / "one.pem"
    end = "-----END CERTIFICATE-----\n"
    file.write_text(certifi.contents().partition(end)[0] + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def shared_database(servers: Servers) -> Iterator[SharedDatabase]:
    database = SharedDatabase(servers)
    database.create()
    yield database
    database.drop()


@pytest.fixture
def database_url(shared_database: SharedDatabase) -> Iterator[str]:
    """A migrated database without rows."""
    yield shared_database.url
    shared_database.clear()


@pytest.fixture
def redis_url(servers: Servers) -> str:
    """An empty Redis."""
    with connect(servers.redis_url) as client:
        client.flushdb()
    return servers.redis_url


@pytest.fixture
def settings(home: Path, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Settings that are also in the environment, for `get_settings` and for processes that a test starts."""
    monkeypatch.setenv("STEERBOARD_HOME", str(home))
    monkeypatch.setenv("STEERBOARD_DATABASE_URL", database_url)
    monkeypatch.setenv("STEERBOARD_REDIS_URL", redis_url)
    monkeypatch.setenv("STEERBOARD_ARTIFACT_URL", f"file://{home / 'artifacts'}")
    get_settings.cache_clear()
    yield get_settings()
    get_settings.cache_clear()


@pytest.fixture(scope="session")
def shared_engine(shared_database: SharedDatabase) -> Engine:
    """One engine for all tests: compiling the same statements for each would take longer than executing them."""
    return make_engine(shared_database.url)


@pytest.fixture
def engine(settings: Settings, shared_engine: Engine) -> Iterator[Engine]:
    """The engine without connections of an earlier test."""
    yield shared_engine
    shared_engine.dispose()


@pytest.fixture
def sessions(engine: Engine) -> sessionmaker[Session]:
    return make_sessions(engine)


@pytest.fixture
def project(sessions: sessionmaker[Session]) -> Project:
    """The project `default`, owned by the local person. The salt is always the same, and so is what is held out."""
    with transaction(sessions) as session:
        default_project, _ = accounts.ensure_default(session, held_out_fraction=0.1)
        default_project.split_salt = "salt"
        return default_project


@pytest.fixture
def store(settings: Settings) -> ArtifactStore:
    return ArtifactStore(settings.artifact_url)


@pytest.fixture(scope="session")
def shared_app() -> FastAPI:
    """Its routes take half a second to make; everything else of it is of one test."""
    return create_app(Settings(database_url="postgresql://nowhere"))


@pytest.fixture
def app(shared_app: FastAPI, settings: Settings, sessions: sessionmaker[Session], project: Project) -> FastAPI:
    attach(shared_app, settings, sessions)
    return shared_app


@pytest.fixture
def own_app(settings: Settings, sessions: sessionmaker[Session], project: Project) -> Iterator[FastAPI]:
    """An app for a test that adds routes."""
    made = create_app(settings, sessions=sessions)
    yield made
    made.state.import_processes.close()


@pytest.fixture
def token(sessions: sessionmaker[Session], project: Project) -> str:
    """A bearer token for all projects with every scope."""
    with transaction(sessions) as session:
        _, user = accounts.ensure_default(session, held_out_fraction=0.1)
        return accounts.replace_local_token(session, user, "test")


@pytest.fixture
def client(app: FastAPI, token: str) -> Iterator[TestClient]:
    """Signed in with `token`. Below the project: `/api/v1/projects/default/...`."""
    with AppClient(app, headers={"Authorization": f"Bearer {token}"}) as signed_in:
        yield signed_in


@pytest.fixture
def broker(redis_url: str) -> Iterator[redis.Redis]:
    with connect(redis_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def stage_parent() -> Iterator[Path]:
    """The socket of one that has imported what stages on one thread use, for all workers that tests start."""
    from steerboard_workers.supervisor.process import environment
    from steerboard_workers.supervisor.warm_start import StageParent

    with pytest.MonkeyPatch.context() as patch:
        for name in PASSING:
            patch.delenv(name, raising=False)
        parent = StageParent(environment("", 1, []))
    yield parent.path
    parent.close()


@pytest.fixture(scope="session")
def running_s3() -> Iterator[S3Server]:
    # Imported here, for most test processes need no S3.
    from support.servers.s3_server import S3Server

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
