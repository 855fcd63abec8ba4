"""The database of a home, for commands that work on it without the API: of servers elsewhere, of a `steerboard up`
that runs, or the embedded one, started for as long as the command takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from steerboard.platform.database import make_engine
from steerboard.platform.migrations import UnusableDatabase
from steerboard.platform.processes import startup
from steerboard.platform.processes.embedded import EmbeddedServers
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage.errors import StoreFailed
from steerboard.platform.storage.home import open_home


def settings_of(home: Path | None) -> Settings:
    """The settings of the environment, for another home if one is given."""
    settings = get_settings()
    return settings if home is None else Settings(home=home.expanduser().absolute())


@contextmanager
def database(settings: Settings, *, migrated: bool = True, new: bool = False) -> Iterator[Engine]:
    """`migrated`: only one with the schema of this code. `new`: a home that has none gets one.

    Raises `UnusableDatabase` where there is none, `ServerFailed`, and what `startup.wait_for_database` does; a database
    or a disk that fails later becomes `DatabaseUnreachable` or `StoreFailed`.
    """
    servers: EmbeddedServers | None = None
    url = settings.database_url
    if not url:
        if not new and not (settings.home / "postgres").exists():
            raise UnusableDatabase(
                f"there is no database in {settings.home}",
                hint="Name its home with --home or STEERBOARD_HOME, or its server with STEERBOARD_DATABASE_URL.",
            )
        open_home(settings.home)
        servers = EmbeddedServers(settings.home)
        url = servers.database_url
        if servers.database_answers():
            servers = None  # of someone else, who stops it
        else:
            servers.start(valkey=False)
    engine: Engine | None = None
    try:
        # No one else migrates the database of a home, so waiting for that would be for nothing.
        patience = settings.start_seconds if settings.database_url else 0.0
        patient = settings.model_copy(update={"database_url": url, "start_seconds": patience})
        startup.wait_for_database(patient, migrated=migrated)
        engine = make_engine(url, pool_size=2)
        yield engine
    except (OperationalError, psycopg.OperationalError) as error:
        raise startup.unreachable(error) from error
    except OSError as error:
        raise StoreFailed(str(error), hint="Check the permissions and the free space there.") from error
    finally:
        if engine is not None:
            engine.dispose()
        if servers is not None:
            servers.stop()
