"""The sweeper: puts right what crashes left behind. Every worker runs it, the API may; any number at once is safe.

It never waits for a row that another process holds, and every step is a transaction of its own.
"""

from __future__ import annotations

import datetime as dt
import logging

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.leases import expired
from steerboard.platform.settings import Settings
from steerboard.runs.ledger import measured_seconds
from steerboard.runs.state import attempt_outcomes, claims, wakeups
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.dependencies import settle_pending
from steerboard.runs.tables import Run, RunAttempt, WorkerRow

log = logging.getLogger(__name__)

_FORGET_WORKERS = dt.timedelta(hours=1)


def sweep(sessions: sessionmaker[Session], settings: Settings) -> None:
    """Requeue runs whose lease has expired, settle pending runs, send lost wake-ups, forget dead workers."""
    with transaction(sessions) as session:
        expire_leases(session, settings.retry_seconds)
    settle_all(sessions)
    with transaction(sessions) as session:
        session.execute(delete(WorkerRow).where(WorkerRow.heartbeat_at < func.clock_timestamp() - _FORGET_WORKERS))
        pools = claims.due_pools(session)
    for pool in pools:
        # Only into an empty queue: with no worker there, wake-ups would pile up without end.
        if wakeups.waiting(settings.redis_url, pool) == 0:
            wakeups.publish(settings.redis_url, pool)


def settle_all(sessions: sessionmaker[Session]) -> None:
    """Settle pending runs level by level, until nothing more moves."""
    while True:
        with transaction(sessions) as session:
            if not settle_pending(session):
                return


def expire_leases(session: Session, retry_seconds: float, limit: int = 100) -> int:
    """End the attempts whose worker has stopped renewing. Returns how many."""
    runs = session.scalars(
        select(Run)
        .where(Run.state == "running", expired(Run.lease_expires_at))
        .order_by(Run.lease_expires_at)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
        .execution_options(populate_existing=True)
    ).all()
    for run in runs:
        attempt = session.get_one(RunAttempt, (run.id, run.attempt))
        # What it did after its last heartbeat is unknown; what it surely used is charged. Phases may be newer.
        held = attempt.devices * (attempt.heartbeat_at - attempt.started_at).total_seconds()
        device_seconds = max(held, measured_seconds(attempt))
        log.warning("run %s (%s): worker %s was lost", run.name, run.id, attempt.worker)
        attempt_outcomes.fail(
            session,
            run,
            Failure(
                "worker_lost",
                f"Worker {attempt.worker} stopped renewing its lease.",
                hint="The machine may have stopped or run out of memory; the run resumes from its last checkpoint.",
                retryable=True,
            ),
            device_seconds,
            retry_seconds,
        )
    return len(runs)
