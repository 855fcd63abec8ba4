"""Work besides requests: jobs whose file is imported get their run, and answers that no one waits for are deleted."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session, sessionmaker

from steerboard.openai_api.chat.answers import forget_left_behind
from steerboard.openai_api.jobs.starting import JobStarter
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore

_LOOK_SECONDS = 0.5

__all__ = ["forget_left_behind", "start"]


def start(sessions: sessionmaker[Session], settings: Settings) -> Callable[[], None]:
    """Returns how to stop."""
    return JobStarter(sessions, ArtifactStore(settings.artifact_url), _LOOK_SECONDS).start().stop
