from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from evaluation_world import EvaluationWorld, write_models
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.fixture
def world(
    client: httpx.Client,
    sessions: sessionmaker[Session],
    project: Project,
    settings: Settings,
    store: ArtifactStore,
    folders: Path,
) -> EvaluationWorld:
    return EvaluationWorld(client, sessions, project, settings, store, folders)
