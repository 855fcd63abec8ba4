from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_stack import Shared, Stack
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.settings import Settings


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return Shared(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def worker_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def artifact_url(worker_home: Path) -> str:
    return f"file://{worker_home / 'artifacts'}"


@pytest.fixture
def stack(
    settings: Settings,
    sessions: sessionmaker[Session],
    project: Project,
    shared: Shared,
    worker_home: Path,
    artifact_url: str,
    stage_parent: Path,
) -> Iterator[Stack]:
    environment = {
        "STEERBOARD_HOME": str(worker_home),
        "STEERBOARD_DATABASE_URL": settings.database_url,
        "STEERBOARD_REDIS_URL": settings.redis_url,
        "STEERBOARD_ARTIFACT_URL": artifact_url,
        # Long enough for a crowded machine; the tests in which a lease has to expire set a shorter one.
        "STEERBOARD_LEASE_SECONDS": "15",
        "STEERBOARD_HEARTBEAT_SECONDS": "0.5",
        "STEERBOARD_SWEEP_SECONDS": "0.5",
        "STEERBOARD_POLL_SECONDS": "0.5",
        "STEERBOARD_RETRY_SECONDS": "0.1",
        "STEERBOARD_STAGE_THREADS": "1",
        "STEERBOARD_STAGE_PARENT": str(stage_parent),
    }
    stack = Stack(sessions, project.id, environment, worker_home, shared)
    stack.prepare()
    yield stack
    stack.stop_workers()
