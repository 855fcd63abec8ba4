from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from ranking_world import RankingWorld
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project


@pytest.fixture
def world(
    app: FastAPI, sessions: sessionmaker[Session], project: Project, client: TestClient
) -> Iterator[RankingWorld]:
    with RankingWorld(app, sessions, project, client) as made:
        yield made
