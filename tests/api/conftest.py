from __future__ import annotations

import httpx
import pytest
from api_world import ApiWorld
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.processes.command_line import steerboard, url

__all__ = ["steerboard", "url"]


@pytest.fixture
def world(client: httpx.Client, sessions: sessionmaker[Session], project: Project) -> ApiWorld:
    """A world with a base model `tiny` and preferences `hh`."""
    made = ApiWorld(client, sessions, project)
    made.dataset("hh")
    made.model("tiny")
    return made
