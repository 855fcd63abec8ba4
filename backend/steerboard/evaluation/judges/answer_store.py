"""Answers of endpoints by the content of the request, kept for a project as soon as they are paid for."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.evaluation.judge_tables import JudgeAnswer
from steerboard.platform.database import transaction
from steerboard.registry.endpoints.chat import Completion

_RETRY_SECONDS = 1.0
Kept = TypeVar("Kept")


class Gone(Exception):
    """There is nothing left to write to."""


class AnswerStore:
    """The answers of one project. Everything waits for the database while it is away; `stopping` ends the waiting."""

    def __init__(self, sessions: sessionmaker[Session], project_id: uuid.UUID, stopping: threading.Event) -> None:
        self._sessions = sessions
        self._project_id = project_id
        self._stopping = stopping

    def answer(self, key: str) -> Completion | None:
        """The answer that the project got to this request before."""

        def look(session: Session) -> Completion | None:
            cached = session.get(JudgeAnswer, (self._project_id, key))
            if cached is None:
                return None
            counts = cached.prompt_tokens, cached.completion_tokens
            return Completion(cached.content, cached.finish_reason, cached.logprobs, *counts)

        return self._do(look)

    def _insert(
        self,
        session: Session,
        key: str,
        answer: Completion,
        seconds: float,
        attempts: int,
        judge_id: uuid.UUID | None,
    ) -> bool:
        """Whether there was none before. `judge_id`: who paid, where it is a judge of an evaluation."""
        kept = session.scalar(
            postgresql.insert(JudgeAnswer)
            .values(
                project_id=self._project_id,
                key=key,
                content=answer.content,
                finish_reason=answer.finish_reason,
                logprobs=answer.logprobs,
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
                seconds=seconds,
                attempts=attempts,
                judge_id=judge_id,
            )
            .on_conflict_do_nothing()
            .returning(JudgeAnswer.key)
        )
        return kept is not None

    def _do(self, work: Callable[[Session], Kept]) -> Kept:
        """Doing it again after an outage is safe: every write here sets a state instead of adding to it; a count
        of failures and a reserved cost may be one too high then."""
        while True:
            try:
                with transaction(self._sessions) as session:
                    return work(session)
            except OperationalError:
                if self._stopping.wait(_RETRY_SECONDS):
                    raise
            except IntegrityError as error:
                if not _deleted(error):
                    raise
                raise Gone("the judge, or an entrant, was deleted") from error


def _deleted(error: IntegrityError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "23503"
