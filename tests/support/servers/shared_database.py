"""A database that the tests of a process share, and the servers that it is on."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from steerboard.platform import migrations
from steerboard.platform.database import make_engine, new_id

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


def administer(url: str, *statements: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))


def make_template(admin_url: str) -> str:
    name = f"steerboard_test_{new_id().hex[-12:]}"
    administer(admin_url, f"CREATE DATABASE {name}")
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
        administer(self._servers.admin_url, f"CREATE DATABASE {self._name} TEMPLATE {self._servers.template}")
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
        administer(self._servers.admin_url, f"DROP DATABASE {self._name} WITH (FORCE)")

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
