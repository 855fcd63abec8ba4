"""The answers of one chat completion: asked for as comparisons of one column each, which no list shows, and forgotten
when the caller has them."""

from __future__ import annotations

import datetime as dt
import secrets
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.openai_api.chat.schemas import ChatIn
from steerboard.platform.http.errors import InvalidRequest, NotFound, ServiceUnavailable
from steerboard.playground import service
from steerboard.playground.claims import POOL
from steerboard.playground.errors import AlreadyEnded
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard.registry.endpoints.service import get_endpoint
from steerboard.registry.service import get_model
from steerboard.runs.tables import WorkerRow
from steerboard_contracts.complaints import locations
from steerboard_contracts.errors import ErrorLocation, SteerboardError

# Who asked is not kept, because the answers are not either. It marks the rows that a crash has left.
_ACTOR = "chat completion"
_LEFT_BEHIND = dt.timedelta(hours=1)
_SEEDS = 2**52


class AnswerLate(SteerboardError):
    """The answer was not complete within the time that a request may take."""

    code = "answer_timeout"
    status = 504
    title = "The answer took too long"


@dataclass(frozen=True)
class Answer:
    """What is known of a choice now. `error`: a problem document, once it has failed."""

    text: str
    tokens: int
    prompt_tokens: int | None
    state: str
    finished: bool
    error: dict[str, Any] | None

    @property
    def ended(self) -> bool:
        return self.state in ("succeeded", "failed", "cancelled")

    @property
    def finish_reason(self) -> str | None:
        if self.state != "succeeded":
            return None
        return "stop" if self.finished else "length"


def ask(session: Session, project: Project, request: ChatIn, lease_seconds: float) -> list[uuid.UUID]:
    """A comparison for each choice. Raises `UnsupportedParameter`, `InvalidRequest`, `NotFound`, `WrongRole`,
    `NoScores` and `ServiceUnavailable` (`no_interactive_worker`)."""
    request.check()
    first = request.seed if request.seed is not None else secrets.randbelow(_SEEDS)
    endpoint = _is_endpoint(session, project, request.model)
    try:
        comparisons = [request.comparison(first + place, endpoint=endpoint) for place in range(request.choices)]
    except ValidationError as error:
        raise InvalidRequest("The request has fields that cannot be used.", errors=locations(error.errors())) from None
    _need_worker(session, lease_seconds)
    made = [service.create_comparison(session, project, each, _ACTOR, blind=True) for each in comparisons]
    return [comparison.id for comparison in made]


def _is_endpoint(session: Session, project: Project, name: str) -> bool:
    """Whether an endpoint is meant: a model of that name comes first. Raises `NotFound`."""
    try:
        get_model(session, project, name)
    except NotFound as error:
        try:
            get_endpoint(session, project, name)
        except NotFound:
            error.errors = [ErrorLocation(location="model", message="is neither a model nor an endpoint")]
            raise error from None
        return True
    return False


def _need_worker(session: Session, lease_seconds: float) -> None:
    fresh = WorkerRow.heartbeat_at > func.clock_timestamp() - dt.timedelta(seconds=lease_seconds)
    if session.scalar(select(WorkerRow.id).where(WorkerRow.pool == POOL, fresh).limit(1)) is None:
        raise ServiceUnavailable(
            "No interactive worker is alive to answer.",
            code="no_interactive_worker",
            hint="Start one: `steerboard worker --pool interactive`.",
        )


def read(session: Session, ids: Sequence[uuid.UUID]) -> list[Answer]:
    """The answers in the order of `ids`."""
    rows = session.scalars(
        select(PlaygroundAnswer)
        .where(PlaygroundAnswer.comparison_id.in_(ids))
        .execution_options(populate_existing=True)
    )
    answers = {
        row.comparison_id: Answer(row.text, row.tokens, row.prompt_tokens, row.state, row.finished, row.error)
        for row in rows
    }
    return [answers[id_] for id_ in ids]


def forget(session: Session, ids: Sequence[uuid.UUID]) -> None:
    """Open ones are cancelled first: their worker notices within a moment."""
    for comparison in session.scalars(select(Comparison).where(Comparison.id.in_(ids))).all():
        with suppress(AlreadyEnded):
            service.cancel(session, comparison)
    session.execute(delete(PlaygroundAnswer).where(PlaygroundAnswer.comparison_id.in_(ids)))
    session.execute(delete(Comparison).where(Comparison.id.in_(ids)))


def forget_left_behind(session: Session) -> None:
    """What the death of a server left."""
    old = func.clock_timestamp() - _LEFT_BEHIND
    ids = select(Comparison.id).where(Comparison.created_by == _ACTOR, Comparison.blind, Comparison.created_at < old)
    left = session.scalars(ids.limit(1000)).all()
    if left:
        forget(session, left)
