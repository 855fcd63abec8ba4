from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from account_people import People
from fastapi import FastAPI
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import BrowserSession, Project
from steerboard.app import background
from steerboard.platform.settings import Settings
from support.patience import wait_until


@pytest.fixture
def people(app: FastAPI, sessions: sessionmaker[Session], project: Project) -> Iterator[People]:
    with People(app, sessions, project) as everyone:
        yield everyone


@pytest.fixture
def sweeping(sessions: sessionmaker[Session], settings: Settings) -> Callable[[], None]:
    """Let the sweeper of `steerboard up` run until an ended session is gone."""

    def is_gone() -> bool:
        with sessions() as session:
            ended = select(BrowserSession).where(BrowserSession.expires_at < func.now())
            return session.scalar(ended.limit(1)) is None

    def sweep() -> None:
        stop = background.sweep(sessions, settings.model_copy(update={"sweep_seconds": 0.01}))
        try:
            wait_until(is_gone)
        finally:
            stop()

    return sweep
