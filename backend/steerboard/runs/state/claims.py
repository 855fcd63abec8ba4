"""Claims: which worker may act for a run, and the fence that every such act passes.

A claim is a lease (`platform.leases`) on a run that is running. The queue, and not the end of a lease, decides which
run is next: the sweeper requeues what its worker has left.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from sqlalchemy import ColumnElement, String, and_, cast, or_, select, update
from sqlalchemy.orm import Session

from steerboard.platform.leases import Lease, Leases, now
from steerboard.runs.device_kinds import device_kind
from steerboard.runs.state.reuse import take_over
from steerboard.runs.state.transitions import move
from steerboard.runs.tables import Run, RunAttempt, WorkerRow
from steerboard_contracts.run_kinds import UNLISTED, all_kinds
from steerboard_contracts.watching.control import Change, Control

# The order in which the runs of a pool that are due are claimed.
QUEUE_ORDER = (Run.priority.desc(), Run.position)


LEASES = Leases(Run, "run", open=Run.state == "running")


@dataclass(frozen=True)
class Claim(Lease):
    """The right of `owner` (a worker's id) to act for attempt `attempt` of a run."""

    @property
    def run_id(self) -> uuid.UUID:
        return self.id


@dataclass(frozen=True)
class Wishes:
    """What people want of an active run."""

    cancel: bool
    control: Control


@dataclass(frozen=True)
class Renewal:
    """`renewed` is False when another transaction of the same claim holds the row; the lease is then still ours."""

    renewed: bool
    wishes: Wishes


def claim_next(
    session: Session,
    *,
    pool: str,
    owner: str,
    worker: str,
    devices: int,
    lease_seconds: float,
    without_device: bool | None = None,
) -> Claim | None:
    """Lease the best eligible run of `pool`: highest priority, then place in the queue, past its `not_before`.
    `without_device`: only those that need none, or only the others.

    A run that an equal one has meanwhile made unnecessary succeeds on the way. Returns None when nothing is left.
    """
    wanted = [Run.state == "queued", Run.pool == pool, is_due()]
    if without_device is not None:
        wanted.append(needs_no_device() if without_device else ~needs_no_device())
    while True:
        run = LEASES.first(session, *wanted, order_by=QUEUE_ORDER)
        if run is None:
            return None
        if run.attempt == 0 and take_over(session, run):
            continue
        lease = LEASES.grant(run, owner, lease_seconds)
        run.not_before = None
        run.progress = None
        if run.started_at is None:
            run.started_at = now()
        move(session, run, "running", f"running on worker {worker}" + (f", attempt {run.attempt}" * (run.attempt > 1)))
        session.add(
            RunAttempt(
                run_id=run.id,
                attempt=run.attempt,
                worker=worker,
                devices=devices,
                device=_device_of(session, owner),
                device_seconds=0.0,
                phases={},
            )
        )
        session.flush()
        return Claim(lease.id, lease.attempt, owner)


def _device_of(session: Session, owner: str) -> str | None:
    devices = session.scalar(select(WorkerRow.devices).where(cast(WorkerRow.id, String) == owner))
    return device_kind(devices) if devices is not None else None


def due_pools(session: Session) -> list[str]:
    """Pools in which a run could be claimed now."""
    return list(session.scalars(select(Run.pool).where(Run.state == "queued", is_due()).distinct()))


def needs_no_device() -> ColumnElement[bool]:
    """The work of a run is to ask an endpoint, or a few seconds of what a page waits for."""
    named = [kind.run for kind in all_kinds() if kind.asks_endpoint == "named"]
    return or_(Run.kind.in_(("judge", UNLISTED)), and_(Run.kind.in_(named), Run.config["endpoint"].astext.is_not(None)))


def is_due() -> ColumnElement[bool]:
    """The pause before another attempt is over."""
    return or_(Run.not_before.is_(None), Run.not_before <= now())


def fenced(session: Session, claim: Claim) -> Run:
    """The run, locked for this transaction. Raises `LeaseLost` when the claim is no longer good."""
    return LEASES.fenced(session, claim)


def wishes_of(session: Session, claim: Claim) -> Wishes:
    """Raises `LeaseLost`."""
    query = select(Run.cancel_requested_at, Run.pause_requested_at, Run.changes).where(LEASES.holds(claim))
    row = session.execute(query).first()
    if row is None:
        raise LEASES.lost(claim)
    changes = [Change.model_validate(change) for change in row.changes]
    control = Control(changes=changes, pause=row.pause_requested_at is not None)
    return Wishes(row.cancel_requested_at is not None, control)


def renew(session: Session, claim: Claim, lease_seconds: float) -> Renewal:
    """Push the lease's end out. Never waits: outputs being registered under the row's lock need no renewal.

    Raises `LeaseLost`.
    """
    wishes = wishes_of(session, claim)
    if not LEASES.renew(session, claim, lease_seconds, waits=False):
        return Renewal(renewed=False, wishes=wishes)
    session.execute(
        update(RunAttempt)
        .where(RunAttempt.run_id == claim.run_id, RunAttempt.attempt == claim.attempt)
        .values(heartbeat_at=now())
    )
    return Renewal(renewed=True, wishes=wishes)
