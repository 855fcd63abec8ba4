"""What an interactive worker may do: take a comparison or a curve, write for it, end it. Every write is fenced.

A claim is a lease (`platform.leases`) on a comparison or curve that has not ended.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from steerboard.platform.events.log import wake
from steerboard.platform.leases import Lease, Leases, now, take_away
from steerboard.playground.errors import problem_document
from steerboard.playground.tables import Comparison, Curve, PlaygroundAnswer
from steerboard_contracts.errors import SteerboardError

POOL = "interactive"
# A channel of Redis; a message means that there is something to take up.
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
class Claim(Lease, Generic[Work]):
    """The right of `owner` (a worker's id) to act for `attempt` of a comparison or curve."""

    kind: type[Work]
    project_id: uuid.UUID

    @property
    def leases(self) -> Leases[Work]:
        return leases_on(self.kind)


def leases_on(kind: type[Work]) -> Leases[Work]:
    return Leases(kind, kind.__name__.lower(), open=kind.ended_at.is_(None))


def channel_of(comparison_id: uuid.UUID) -> str:
    """Redis channel that signals changed answers of this comparison."""
    return f"{CHANNEL}.{comparison_id}"


def claim_next(
    session: Session, kind: type[Work], owner: str, lease_seconds: float, *, beside: Collection[uuid.UUID] = ()
) -> Claim[Work] | None:
    """Lease the oldest open one that no one serves, of any project but those of `beside`. One that has brought down its
    workers fails on the way."""
    leases = leases_on(kind)
    while True:
        row = leases.first(session, leases.free(), kind.project_id.not_in(beside), order_by=(kind.id,))
        if row is None:
            return None
        if row.attempt >= MAX_ATTEMPTS:
            _give_up(session, row)
            continue
        lease = leases.grant(row, owner, lease_seconds)
        session.flush()
        return Claim(lease.id, lease.attempt, owner, kind, row.project_id)


def _give_up(session: Session, row: Comparison | Curve) -> None:
    error = WorkersLost(
        f"{MAX_ATTEMPTS} workers ended while they served this.",
        hint="It may need more memory than the interactive worker's machine has; see the worker's log.",
    )
    problem = problem_document(error)
    if isinstance(row, Comparison):
        session.execute(
            update(PlaygroundAnswer)
            .where(PlaygroundAnswer.comparison_id == row.id, PlaygroundAnswer.ended_at.is_(None))
            .values(state="failed", error=problem, waits_for=None, ended_at=now())
        )
        wake(session, channel_of(row.id))
    else:
        row.state, row.error, row.waits_for = "failed", problem, None
    row.ended_at = now()
    take_away(row)
    session.flush()


def fenced(session: Session, claim: Claim[Work]) -> Work:
    """The row, locked for this transaction. Raises `LeaseLost` when the claim is no longer good."""
    return claim.leases.fenced(session, claim)


def check(session: Session, claim: Claim[Work]) -> None:
    """Raises `LeaseLost` when the claim is no longer good. Locks nothing."""
    claim.leases.check(session, claim)


def renew(session: Session, owner: str, ids: Collection[uuid.UUID], lease_seconds: float) -> None:
    """Push out the ends of a worker's leases on what it still works for."""
    if ids:
        leases_on(Comparison).renew_all(session, owner, ids, lease_seconds)
        leases_on(Curve).renew_all(session, owner, ids, lease_seconds)


def release(session: Session, claim: Claim[Work]) -> None:
    """Give it back, without counting the attempt: the worker is stopped on purpose."""
    claim.leases.give_back(session, claim, tried=False)
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
            values = {**values, "ended_at": now(), "waits_for": None}
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
        comparison.ended_at = now()
        comparison.lease_owner = None
    wake(session, channel_of(claim.id))
