"""Bringing a database to the schema of this code. Safe when several processes start at once."""

from __future__ import annotations

from functools import cache

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from steerboard.platform import package_files
from steerboard_contracts.errors import SteerboardError

_LOCK = 7_230_515_911
MINIMUM_VERSION = 150_000


class UnusableDatabase(SteerboardError):
    """The database cannot be used by this version of Steerboard."""

    code = "unusable_database"
    title = "The database cannot be used"


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(package_files.folder("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@cache
def scripts() -> ScriptDirectory:
    """The migrations of this code, which are read once: each is a module."""
    return ScriptDirectory.from_config(_config())


def newest_revision() -> str | None:
    return scripts().get_current_head()


def current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def missing_revisions(connection: Connection) -> bool:
    """Whether the database is older than this code. Raises `UnusableDatabase` when it is newer."""
    current = current_revision(connection)
    if current is not None and not knows(current):
        raise UnusableDatabase(
            f"the database is at revision {current}, which this version does not know",
            hint="It was migrated by a newer Steerboard; update this one.",
        )
    return current != newest_revision()


def knows(revision: str) -> bool:
    """Whether this code can bring a database from there to its own schema."""
    return revision in {script.revision for script in scripts().walk_revisions()}


def lock(connection: Connection) -> None:
    """No one else changes the schema until the transaction ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def upgrade(connection: Connection, revision: str) -> None:
    """Upgrade in the transaction of `connection`, which should hold the lock."""
    command.upgrade(_config(connection), revision)


def downgrade(connection: Connection, revision: str) -> None:
    """Downgrade in the transaction of `connection`. What only newer revisions have is lost."""
    command.downgrade(_config(connection), revision)


def migrate(engine: Engine) -> None:
    """All missing revisions in one transaction, under an advisory lock. Raises `UnusableDatabase`."""
    with engine.begin() as connection:
        lock(connection)
        version = int(connection.execute(text("SHOW server_version_num")).scalar_one())
        if version < MINIMUM_VERSION:
            raise UnusableDatabase(
                f"PostgreSQL {version // 10000} is too old", hint="Steerboard needs PostgreSQL 15 or newer."
            )
        missing_revisions(connection)
        upgrade(connection, "head")
