from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from maintenance_world import KeptWorld, Place
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from steerboard.accounts.tables import Project
from steerboard.platform.database import make_engine, new_id
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from support.processes.command_line import steerboard

__all__ = ["steerboard"]


@pytest.fixture
def world(
    sessions: sessionmaker[Session], project: Project, store: ArtifactStore, settings: Settings, tmp_path: Path
) -> KeptWorld:
    made = KeptWorld(sessions, project, store, Secrets(settings), tmp_path)
    made.fill()
    return made


@pytest.fixture
def empty(servers: Any) -> Iterator[Engine]:
    """A database that no one has migrated."""
    name = f"steerboard_empty_{new_id().hex[-12:]}"
    admin = create_engine(servers.admin_url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    made = make_engine(servers.url_of(name))
    yield made
    made.dispose()
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def place(engine: Engine, empty: Engine, world: KeptWorld, tmp_path: Path) -> Place:
    return Place(engine, empty, world, tmp_path)
