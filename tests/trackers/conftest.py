from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from sqlalchemy.orm import Session, sessionmaker
from tracker_world import TrackerWorld

from steerboard.accounts.tables import Project
from steerboard.app.main import attach
from steerboard.platform.settings import Settings, get_settings
from support.servers.app_client import AppClient
from support.servers.other_server import OtherServer, other_server


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


@pytest.fixture
def world(
    app: FastAPI,
    settings: Settings,
    sessions: sessionmaker[Session],
    project: Project,
    token: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[TrackerWorld]:
    """The operator has allowed servers of this machine."""
    monkeypatch.setenv("STEERBOARD_ALLOWED_PRIVATE", "127.0.0.1")
    monkeypatch.setenv("STEERBOARD_PUBLIC_URL", "https://steerboard.example/")
    get_settings.cache_clear()
    attach(app, get_settings(), sessions)
    with AppClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        yield TrackerWorld(sessions, project, client, get_settings(), app.state.secrets)
