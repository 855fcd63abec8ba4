from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from judge_world import JudgeWorld, saying
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.settings import Settings
from steerboard.registry.endpoints import rate_limit
from support.servers.other_server import other_server


@pytest.fixture
def world(
    sessions: sessionmaker[Session],
    engine: Engine,
    settings: Settings,
    project: Project,
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[JudgeWorld]:
    """Its endpoint is on this machine, which its settings allow; no one rests between attempts."""
    monkeypatch.setattr(rate_limit, "backoff", lambda attempt: 0.0)
    settings.allowed_private = "127.0.0.1"
    with other_server() as server:
        server.answer = saying("Rating: [[7]]")
        made = JudgeWorld(sessions, engine, settings, project, client, server)
        made.endpoint()
        yield made
