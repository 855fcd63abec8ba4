"""The database of a home, for commands that work on it without the API: of servers elsewhere, of a `steerboard up`
that runs, or the embedded one, started for as long as the command takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from steerboard.platform.database import make_engine
from steerboard.platform.embedded import EmbeddedServers
from steerboard.platform.settings import Settings, get_settings


def settings_of(home: Path | None) -> Settings:
    """Those of the environment, for another home if one is given."""
    settings = get_settings()
    return settings if home is None else Settings(home=home.expanduser().absolute())


@contextmanager
def database(settings: Settings) -> Iterator[Engine]:
    """Raises `ServerFailed`."""
    servers: EmbeddedServers | None = None
    url = settings.database_url
    if not url:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        servers = EmbeddedServers(settings.home)
        url = servers.database_url
        if servers.database_answers():
            servers = None  # of somebody else, who stops it
        else:
            servers.start(valkey=False)
    engine = make_engine(url, pool_size=2)
    try:
        yield engine
    finally:
        engine.dispose()
        if servers is not None:
            servers.stop()
