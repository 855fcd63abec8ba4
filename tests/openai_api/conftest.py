from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from fastapi import FastAPI
from openai_world import OpenAIWorld
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from support.servers.served_app import served


@pytest.fixture
def world(
    app: FastAPI,
    token: str,
    sessions: sessionmaker[Session],
    project: Project,
    settings: Settings,
    store: ArtifactStore,
    tmp_path: Path,
) -> Iterator[OpenAIWorld]:
    with served(app) as url:
        yield OpenAIWorld(url, token, sessions, project, settings, store, tmp_path)


@pytest.fixture
def ours(world: OpenAIWorld) -> Iterator[openai.OpenAI]:
    with world.client() as client:
        yield client
