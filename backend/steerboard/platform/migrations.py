"""Bringing a database to the schema of this code. Safe when several processes start at once."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from steerboard_contracts.errors import SteerboardError

_LOCK = 7_230_515_911
MINIMUM_VERSION = 150_000


class UnusableDatabase(SteerboardError):
    """The database cannot be used by this version of Steerboard."""

    code = "unusable_database"
    title = "The database cannot be used"


def scripts_folder() -> Path:
    """`migrations/` of the checkout."""
    return Path(__file__).resolve().parents[3] / "migrations"


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def newest_revision() -> str | None:
    return ScriptDirectory.from_config(_config()).get_current_head()


def current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def migrate(engine: Engine) -> None:
    """All missing revisions in one transaction, under an advisory lock. Raises `UnusableDatabase`."""
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        version = int(connection.execute(text("SHOW server_version_num")).scalar_one())
        if version < MINIMUM_VERSION:
            raise UnusableDatabase(
                f"PostgreSQL {version // 10000} is too old", hint="Steerboard needs PostgreSQL 15 or newer."
            )
        current = current_revision(connection)
        known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
        if current is not None and current not in known:
            raise UnusableDatabase(
                f"the database is at revision {current}, which this version does not know",
                hint="It was migrated by a newer Steerboard; update this one.",
            )
        command.upgrade(_config(connection), "head")
