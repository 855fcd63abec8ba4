from __future__ import annotations

import pytest
from run_world import World
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project


@pytest.fixture
def world(sessions: sessionmaker[Session], project: Project) -> World:
    return World(sessions, project)
