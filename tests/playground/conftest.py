from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from playground_world import PlaygroundWorld, working, write_models
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard_workers.cpu_threads import usable_cores
from steerboard_workers.interactive.hosts import environment
from steerboard_workers.interactive.worker import InteractiveWorker
from steerboard_workers.supervisor.warm_start import StageParent
from support.servers.served_app import served


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.fixture(scope="session")
def model_parent(folders: Path) -> Iterator[Path]:
    """The socket of a stage parent that all workers of these tests share: one for each would import torch again.

    After the models were made: that sets variables of this process, which those of a model's process must equal."""
    parent = StageParent(environment("", max(1, usable_cores() // 2)))
    yield parent.path
    parent.close()


@pytest.fixture
def settings(settings: Settings, model_parent: Path) -> Settings:
    return settings.model_copy(update={"stage_parent": model_parent})


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
