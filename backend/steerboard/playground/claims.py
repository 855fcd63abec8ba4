"""What an interactive worker may do: take a comparison or a curve, write for it, end it. Every write is fenced.

A claim is (id, attempt, owner), good while the row says the same and is open. Leases run on the database's clock.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.orm import Session

from steerboard.platform.events import wake
from steerboard.playground.errors import problem_document
from steerboard.playground.tables import Comparison, Curve, PlaygroundAnswer
from steerboard.runs.errors import LeaseLost
from steerboard_contracts.errors import SteerboardError

POOL = "interactive"
# Of Redis: there is something to take up.
CHANNEL = "steerboard.playground"
# What brings down that many workers is not given to another.
MAX_ATTEMPTS = 3
ENDED = ("succeeded", "failed", "cancelled")

Work = TypeVar("Work", Comparison, Curve)


class WorkersLost(SteerboardError):
    """Every attempt ended with the death of its worker."""

    code = "worker_lost"
    title = "The worker was lost"


@dataclass(frozen=True)
class Claim(Generic[Work]):
    """The right of `owner` (a worker's id) to act for `attempt` of a comparison or curve."""

    kind: type[Work]
    id: uuid.UUID
    attempt: int
    owner: str


def channel_of(comparison_id: uuid.UUID) -> str:
    """Redis channel that says: answers of this comparison have changed."""
    return f"{CHANNEL}.{comparison_id}"


def _now() -> ColumnElement[Any]:
    return func.clock_timestamp()


def _free(kind: type[Comparison] | type[Curve]) -> ColumnElement[bool]:
    return or_(kind.lease_owner.is_(None), kind.lease_expires_at < _now())


def claim_next(session: Session, kind: type[Work], owner: str, lease_seconds: float) -> Claim[Work] | None:
    """Lease the oldest open one that nobody serves. One that has brought down its workers fails on the way."""
    while True:
        found = session.scalars(
            select(kind)
            .where(kind.ended_at.is_(None), _free(kind))
            .order_by(kind.id)
            .limit(1)
            .with_for_update(key_share=True, skip_locked=True)
            .execution_options(populate_existing=True)
        ).first()
        if found is None:
            return None
        if found.attempt >= MAX_ATTEMPTS:
            _give_up(session, found)
            continue
        found.attempt += 1
        found.lease_owner = owner
        found.lease_expires_at = _now() + dt.timedelta(seconds=lease_seconds)
        session.flush()
        return Claim(kind, found.id, found.attempt, owner)


def _give_up(session: Session, found: Comparison | Curve) -> None:
    error = WorkersLost(
        f"{MAX_ATTEMPTS} workers ended while they served this.",
        hint="It may need more memory than the interactive worker's machine has; see the worker's log.",
    )
    problem = problem_document(error)
    if isinstance(found, Comparison):
        session.execute(
            update(PlaygroundAnswer)
            .where(PlaygroundAnswer.comparison_id == found.id, PlaygroundAnswer.ended_at.is_(None))
            .values(state="failed", error=problem, waits_for=None, ended_at=_now())
        )
        wake(session, channel_of(found.id))
    else:
        found.state, found.error, found.waits_for = "failed", problem, None
    found.ended_at = _now()
    found.lease_owner = None
    session.flush()


def fenced(session: Session, claim: Claim[Work]) -> Work:
    """The row, locked for this transaction. Raises `LeaseLost` when the claim is no longer good."""
    kind = claim.kind
    found = session.scalars(
        select(kind)
        .where(
            kind.id == claim.id,
            kind.attempt == claim.attempt,
            kind.lease_owner == claim.owner,
            kind.ended_at.is_(None),
        )
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).first()
    if found is None:
        raise LeaseLost(f"attempt {claim.attempt} of {claim.id} was taken over, cancelled or has ended")
    return found


def renew(session: Session, owner: str, ids: Collection[uuid.UUID], lease_seconds: float) -> None:
    """Push out the ends of a worker's leases on what it still works for."""
    end = _now() + dt.timedelta(seconds=lease_seconds)
    for kind in (Comparison, Curve) if ids else ():
        mine = (kind.id.in_(ids), kind.lease_owner == owner, kind.ended_at.is_(None))
        session.execute(update(kind).where(*mine).values(lease_expires_at=end))


def release(session: Session, claim: Claim[Work]) -> None:
    """Give it back, without counting the attempt: the worker is stopped on purpose."""
    found = fenced(session, claim)
    found.lease_owner, found.lease_expires_at = None, None
    found.attempt -= 1
    wake(session, CHANNEL)


def open_answers(session: Session, claim: Claim[Comparison]) -> tuple[Comparison, list[PlaygroundAnswer]]:
    """The comparison with those of its answers that have not ended, set back to their beginning."""
    comparison = fenced(session, claim)
    answers = list(
        session.scalars(
            select(PlaygroundAnswer)
            .where(PlaygroundAnswer.comparison_id == claim.id, PlaygroundAnswer.ended_at.is_(None))
            .order_by(PlaygroundAnswer.place)
            .execution_options(populate_existing=True)
        )
    )
    for answer in answers:
        answer.state, answer.text, answer.tokens, answer.finished = "queued", "", 0, False
        answer.first_token_seconds = answer.seconds = answer.started_at = None
        answer.waits_for = "the other columns" if len(answers) > 1 else None
    wake(session, channel_of(claim.id))
    return comparison, answers


def write_answers(session: Session, claim: Claim[Comparison], changes: dict[int, dict[str, Any]]) -> None:
    """Set fields of open answers by their place; a `state` that is an end ends the answer, and the last one ends the
    comparison. Raises `LeaseLost`."""
    comparison = fenced(session, claim)
    for place, values in changes.items():
        if values.get("state") in ENDED:
            values = {**values, "ended_at": _now(), "waits_for": None}
        session.execute(
            update(PlaygroundAnswer)
            .where(
                PlaygroundAnswer.comparison_id == claim.id,
                PlaygroundAnswer.place == place,
                PlaygroundAnswer.ended_at.is_(None),
            )
            .values(**values)
            .execution_options(synchronize_session=False)
        )
    is_open = (PlaygroundAnswer.comparison_id == claim.id, PlaygroundAnswer.ended_at.is_(None))
    if session.scalar(select(PlaygroundAnswer.place).where(*is_open).limit(1)) is None:
        comparison.ended_at = _now()
        comparison.lease_owner = None
    wake(session, channel_of(claim.id))
