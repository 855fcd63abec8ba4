"""Alembic's entry: the connection comes from the caller, or from STEERBOARD_DATABASE_URL on the command line."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from steerboard.app.tables import metadata
from steerboard.platform.database import make_engine
from steerboard.platform.settings import get_settings


def _migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_type=True, compare_server_default=False)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    _migrate(given)
else:
    with make_engine(get_settings().database_url).begin() as own:
        _migrate(own)
