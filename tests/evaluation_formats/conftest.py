from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from formats_world import FormatsWorld
from sqlalchemy.orm import Session, sessionmaker

from support.processes.command_line import steerboard, url

__all__ = ["steerboard", "url"]

PUBLISHED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def world(client: TestClient, sessions: sessionmaker[Session]) -> FormatsWorld:
    return FormatsWorld(client, sessions)


@pytest.fixture(scope="session")
def published() -> Path:
    if not PUBLISHED.is_dir():
        pytest.skip(f"the published benchmark data is not at {PUBLISHED}")
    return PUBLISHED
