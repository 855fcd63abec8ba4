from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.rows.arena_world import ArenaWorld


@pytest.fixture
def world(app: FastAPI, sessions: sessionmaker[Session], project: Project, client: TestClient) -> Iterator[ArenaWorld]:
    with ArenaWorld(app, sessions, project, client) as made:
        yield made
