from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from account_people import People
from fastapi import FastAPI
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import BrowserSession, Project
from steerboard.app import background
from steerboard.platform.settings import Settings
from support.patience import PATIENCE


@pytest.fixture
def people(app: FastAPI, sessions: sessionmaker[Session], project: Project) -> Iterator[People]:
    with People(app, sessions, project) as found:
        yield found


@pytest.fixture
def sweeping(sessions: sessionmaker[Session], settings: Settings) -> Callable[[], None]:
    """Let the sweeper of `steerboard up` run until an ended session is gone."""

    def sweep() -> None:
        stop = background.sweep(sessions, settings.model_copy(update={"sweep_seconds": 0.01}))
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            with sessions() as session:
                ended = select(BrowserSession).where(BrowserSession.expires_at < func.now())
                if session.scalar(ended.limit(1)) is None:
                    break
            time.sleep(0.02)
        stop()

    return sweep
