from __future__ import annotations

import pytest
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.rows.run_world import World


@pytest.fixture
def world(sessions: sessionmaker[Session], project: Project) -> World:
    return World(sessions, project)
