"""Claims: which worker may act for a run, and the fence that every such act passes.

A claim is (run, attempt, owner). It is good while the row says the same and the run is running; a newer attempt, an
ending or a requeue makes it worthless, whatever the claimant believes. Leases run on the database's clock.
"""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from steerboard.runs import reuse
from steerboard.runs.errors import LeaseLost
from steerboard.runs.tables import Run, RunAttempt
from steerboard.runs.transitions import move

# The order in which the runs of a pool that are due are claimed.
QUEUE_ORDER = (Run.priority.desc(), Run.position)


@dataclass(frozen=True)
class Claim:
    """The right of `owner` (a worker's id) to act for attempt `attempt` of a run."""

    run_id: uuid.UUID
    attempt: int
    owner: str


@dataclass(frozen=True)
class Renewal:
    """`renewed` is False when another transaction of the same claim holds the row; the lease is then still ours."""

    renewed: bool
    cancel_requested: bool


def lease_end(lease_seconds: float) -> ColumnElement[Any]:
    return func.clock_timestamp() + dt.timedelta(seconds=lease_seconds)


def claim_next(
    session: Session, *, pool: str, owner: str, worker: str, devices: int, lease_seconds: float
) -> Claim | None:
    """Lease the best eligible run of `pool`: highest priority, then place in the queue, past its `not_before`.

    A run that an equal one has meanwhile made unnecessary succeeds on the way. Returns None when nothing is left.
    """
    while True:
        run = session.scalars(
            select(Run)
            .where(Run.state == "queued", Run.pool == pool, is_due())
            .order_by(*QUEUE_ORDER)
            .limit(1)
            .with_for_update(key_share=True, skip_locked=True)
            .execution_options(populate_existing=True)
        ).first()
        if run is None:
            return None
        if run.attempt == 0 and reuse.take_over(session, run):
            continue
        run.attempt += 1
        run.lease_owner = owner
        run.lease_expires_at = lease_end(lease_seconds)
        run.not_before = None
        run.progress = None
        if run.started_at is None:
            run.started_at = func.clock_timestamp()
        move(session, run, "running", f"runs on worker {worker}" + (f", attempt {run.attempt}" * (run.attempt > 1)))
        session.add(RunAttempt(run_id=run.id, attempt=run.attempt, worker=worker, devices=devices, device_seconds=0.0))
        session.flush()
        return Claim(run.id, run.attempt, owner)


def due_pools(session: Session) -> list[str]:
    """Pools in which a run could be claimed now."""
    return list(session.scalars(select(Run.pool).where(Run.state == "queued", is_due()).distinct()))


def is_due() -> ColumnElement[bool]:
    """The pause before another attempt is over."""
    return or_(Run.not_before.is_(None), Run.not_before <= func.clock_timestamp())


def _holds(claim: Claim) -> ColumnElement[bool]:
    return and_(
        Run.id == claim.run_id,
        Run.attempt == claim.attempt,
        Run.lease_owner == claim.owner,
        Run.state == "running",
    )


def fenced(session: Session, claim: Claim) -> Run:
    """The run, locked for this transaction. Raises `LeaseLost` when the claim is no longer good.

    Every write on behalf of a run starts here. Locking first, before anything else of the transaction, also keeps
    the order of locks the same everywhere.
    """
    run = session.scalars(
        select(Run).where(_holds(claim)).with_for_update(key_share=True).execution_options(populate_existing=True)
    ).first()
    if run is None:
        raise LeaseLost(f"attempt {claim.attempt} of run {claim.run_id} no longer holds its lease")
    return run


def renew(session: Session, claim: Claim, lease_seconds: float) -> Renewal:
    """Push the lease's end out. Never waits: outputs being registered under the row's lock need no renewal.

    Raises `LeaseLost`.
    """
    cancel = session.execute(select(Run.cancel_requested_at).where(_holds(claim))).first()
    if cancel is None:
        raise LeaseLost(f"attempt {claim.attempt} of run {claim.run_id} no longer holds its lease")
    free = session.scalar(select(Run.id).where(_holds(claim)).with_for_update(key_share=True, skip_locked=True))
    if free is None:
        return Renewal(renewed=False, cancel_requested=cancel[0] is not None)
    session.execute(update(Run).where(_holds(claim)).values(lease_expires_at=lease_end(lease_seconds)))
    session.execute(
        update(RunAttempt)
        .where(RunAttempt.run_id == claim.run_id, RunAttempt.attempt == claim.attempt)
        .values(heartbeat_at=func.clock_timestamp())
    )
    return Renewal(renewed=True, cancel_requested=cancel[0] is not None)
