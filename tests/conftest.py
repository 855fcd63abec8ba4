"""Real servers for every test: the embedded pair, or those that STEERBOARD_DATABASE_URL / STEERBOARD_REDIS_URL name.

A migrated template database is made once in each test process and cloned once for its tests, each of which leaves it
empty. On a named Redis the tests use the databases 8 and up, one for each test process, and empty them.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.internal.conjecture import providers
from sqlalchemy import Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool
from xdist.scheduler import LoadScopeScheduling

from steerboard.accounts import service as accounts
from steerboard.accounts.tables import Project
from steerboard.app.main import attach, create_app
from steerboard.app.wiring import wire
from steerboard.platform import migrations
from steerboard.platform.database import make_engine, make_sessions, new_id, transaction
from steerboard.platform.events.redis_url import connect
from steerboard.platform.processes.embedded import EmbeddedServers
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage.artifacts import ArtifactStore

wire()

# `make test` draws the same examples each time and judges none by its time; `make test-all` looks further.
hypothesis_settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("ci")

if TYPE_CHECKING:
    from support.servers.s3_server import S3Server

_FIRST_REDIS_DATABASE = 8
# Cheap to read, and different after any change of tables, columns, defaults, indexes, constraints or triggers.
_SCHEMA = """
    SELECT md5(concat(
        (SELECT string_agg(version_num, ',') FROM alembic_version),
        (SELECT string_agg(concat_ws(' ', attrelid, attname, atttypid, atttypmod, attnotnull, atthasdef, attisdropped),
            ',' ORDER BY attrelid, attnum) FROM pg_attribute
            WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)),
        (SELECT string_agg(concat(adrelid, adbin), ',' ORDER BY oid) FROM pg_attrdef),
        (SELECT string_agg(concat(oid, conname, conrelid), ',' ORDER BY oid) FROM pg_constraint
            WHERE connamespace = 'public'::regnamespace),
        (SELECT string_agg(concat(oid, tgname, tgenabled), ',' ORDER BY oid) FROM pg_trigger WHERE NOT tgisinternal)
    ))
"""


_END_OTHERS = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


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


class SharedDatabase:
    """One database for the tests of a process, one after the other: to empty it is much quicker than to make one, and
    a connection that stays is quicker than another one for each test."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._name = f"{servers.template}_shared"
        self.url = servers.url_of(self._name)
        self._empty = ""
        self._schema: str | None = None
        self._open: Connection | None = None

    def create(self) -> None:
        _admin(self._servers.admin_url, f"CREATE DATABASE {self._name} TEMPLATE {self._servers.template}")
        connection = self._connect()
        self._schema = self._schema_of(connection)
        tables = connection.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
        sequences = connection.scalars(text("SELECT sequencename FROM pg_sequences"))
        # Ten times as quick as TRUNCATE, which writes new files for each table, its indexes and all that refer to it.
        # As a replica, so that neither references nor triggers are looked at.
        steps = ["SET session_replication_role = replica"]
        steps += [f'DELETE FROM "{table}"' for table in tables if table != "alembic_version"]
        steps += [f'ALTER SEQUENCE "{sequence}" RESTART' for sequence in sequences]
        self._empty = ";".join(steps)

    def drop(self) -> None:
        if self._open is not None:
            self._open.invalidate()
            self._open.close()
            self._open = None
        _admin(self._servers.admin_url, f"DROP DATABASE {self._name} WITH (FORCE)")

    def clear(self) -> None:
        """Open connections are closed, and all rows are removed; with a schema that a test has changed, everything."""
        try:
            cleared = self._clear()
        except OperationalError:  # a test has ended all connections, or the server's
            cleared = False
        if not cleared:
            self.drop()
            self.create()

    def _clear(self) -> bool:
        connection = self._connect()
        connection.execute(text(_END_OTHERS))
        if self._schema_of(connection) != self._schema:
            return False
        connection.execute(text(self._empty))
        return True

    def _schema_of(self, connection: Connection) -> str | None:
        """A digest of the revision and of what the catalogue holds of tables."""
        revision = connection.scalar(text("SELECT to_regclass('public.alembic_version')"))
        return connection.scalar(text(_SCHEMA)) if revision else None

    def _connect(self) -> Connection:
        if self._open is None:
            self._open = create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect()
        return self._open


def _with_redis_database(url: str, number: int) -> str:
    parts = urlsplit(url)
    if parts.scheme.startswith("redis") and not parts.scheme.endswith("socket"):
        return urlunsplit(parts._replace(path=f"/{number}"))
    return f"{url.partition('?')[0]}?db={number}"


# Folders whose tests share what takes long to make (a running platform, trained models), the longest first: one process
# has each of them. Others are cut into files.
_TOGETHER = ("e2e", "playground", "faults", "training")


def _group(nodeid: str) -> str:
    """Which tests stay in one process with this one."""
    file = nodeid.split("::")[0].removeprefix("tests/")
    folder = file.split("/")[0]
    return folder if folder in _TOGETHER else file


class _ByGroup(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByGroup | None:
    return _ByGroup(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_configure(config: pytest.Config) -> None:
    # What collection imports stays: to look for garbage in it, now and whenever a test or a library collects, takes
    # longer than many tests.
    gc.disable()
    # Hypothesis draws constants from the source of all modules of ours that are imported by then: to read it takes half
    # a minute in a clean clone, and makes the examples depend on which tests came before.
    if config.getoption("--hypothesis-profile", None) != "explore":
        providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(_TOGETHER)}
    items.sort(key=lambda item: order.get(_group(item.nodeid), len(order)))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


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
    """Also in the environment, for `get_settings` and for processes that a test starts."""
    monkeypatch.setenv("STEERBOARD_HOME", str(home))
    monkeypatch.setenv("STEERBOARD_DATABASE_URL", database_url)
    monkeypatch.setenv("STEERBOARD_REDIS_URL", redis_url)
    monkeypatch.setenv("STEERBOARD_ARTIFACT_URL", f"file://{home / 'artifacts'}")
    get_settings.cache_clear()
    yield get_settings()
    get_settings.cache_clear()


@pytest.fixture(scope="session")
def shared_engine(shared_database: SharedDatabase) -> Engine:
    """To compile the same statements for each test would take longer than to execute them."""
    return make_engine(shared_database.url)


@pytest.fixture
def engine(settings: Settings, shared_engine: Engine) -> Iterator[Engine]:
    """Without connections of an earlier test."""
    yield shared_engine
    shared_engine.dispose()


@pytest.fixture
def sessions(engine: Engine) -> sessionmaker[Session]:
    return make_sessions(engine)


@pytest.fixture
def project(sessions: sessionmaker[Session]) -> Project:
    """The project `default`, owned by the local person. The salt is always the same, and so is what is held out."""
    with transaction(sessions) as session:
        found, _ = accounts.ensure_default(session, held_out_fraction=0.1)
        found.split_salt = "salt"
        return found


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
    """For a test that adds routes."""
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
    with TestClient(app, headers={"Authorization": f"Bearer {token}"}) as signed_in:
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
        patch.delenv("PYTEST_CURRENT_TEST")  # another one in each test
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
