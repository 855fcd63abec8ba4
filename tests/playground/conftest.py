from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from playground_world import PlaygroundWorld, working, write_models
from sqlalchemy.orm import Session, sessionmaker

from served_app import served
from steerboard.accounts.tables import Project
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard_workers.interactive.worker import InteractiveWorker


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.fixture
def world(
    app: FastAPI,
    client: httpx.Client,
    token: str,
    sessions: sessionmaker[Session],
    project: Project,
    settings: Settings,
    store: ArtifactStore,
    folders: Path,
) -> Iterator[PlaygroundWorld]:
    with served(app) as url:
        yield PlaygroundWorld(client, url, token, sessions, project, settings, store, folders)


@pytest.fixture
def worker(world: PlaygroundWorld, settings: Settings) -> Iterator[InteractiveWorker]:
    with working(settings) as started:
        yield started
