"""The one way in which a run changes its state: the row, its timeline and the event, in one transaction."""

from __future__ import annotations

import uuid

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from steerboard.platform.leases import take_away
from steerboard.runs.facts.recording import note_end as note_results
from steerboard.runs.facts.recording import note_settings
from steerboard.runs.hooks import evaluation_run_moved
from steerboard.runs.state import wakeups
from steerboard.runs.state.announcements import announce, note_end
from steerboard.runs.state.states import ENDED, RunState
from steerboard.runs.tables import Run, RunTransition
from steerboard_contracts.run_kinds import EVALUATION_PARTS

__all__ = ["ALLOWED", "ENDED", "RunState", "lock", "lock_order", "move"]

# What may follow what. `failed`, `cancelled` and `paused` lead back only through `lifecycle.resume`.
ALLOWED: dict[str | None, frozenset[str]] = {
    None: frozenset({"pending"}),
    "pending": frozenset({"queued", "succeeded", "failed", "cancelled", "skipped"}),
    "queued": frozenset({"running", "succeeded", "failed", "cancelled", "paused"}),
    "running": frozenset({"queued", "succeeded", "failed", "cancelled", "paused"}),
    "paused": frozenset({"pending", "cancelled"}),
    "failed": frozenset({"pending"}),
    "cancelled": frozenset({"pending"}),
    "succeeded": frozenset(),
    "skipped": frozenset(),
}


def move(session: Session, run: Run, to: RunState, reason: str, code: str | None = None) -> None:
    """Change `run`, whose row the caller has locked (or just made), to state `to`.

    `reason` is for people, `code` is stable. Leaving `running` gives the lease up; becoming `queued` wakes the pool
    after the commit.
    """
    before: str | None = run.state or None
    if to not in ALLOWED[before]:
        raise AssertionError(f"a run cannot go from {before} to {to}")
    run.state, run.reason, run.reason_code = to, reason, code
    if to != "running":
        take_away(run)
    if to == "queued":
        run.queued_at = func.clock_timestamp()
        wakeups.after_commit(session, run.pool)
    run.ended_at = func.clock_timestamp() if to in ENDED else None
    session.flush()
    session.add(RunTransition(run_id=run.id, attempt=run.attempt, from_state=before, to_state=to, reason=reason))
    session.refresh(run, ["queued_at", "ended_at"])
    if before is None:
        note_settings(session, run)
    if to in ENDED:
        note_results(session, run)
        note_end(session, run)
    if run.kind in EVALUATION_PARTS and (to in ENDED or before in ENDED):
        evaluation_run_moved(session, uuid.UUID(run.config["evaluation"]))
    announce(
        session,
        run.project_id,
        "run.state",
        {
            "run_id": str(run.id),
            "pipeline_id": str(run.pipeline_id) if run.pipeline_id else None,
            "parent_id": str(run.parent_id) if run.parent_id else None,
            "name": run.name,
            "state": to,
            "reason": reason,
            "reason_code": code,
            "attempt": run.attempt,
        },
    )


def lock(session: Session, run: Run) -> Run:
    """The run's row as it is now, locked until the transaction ends.

    `FOR NO KEY UPDATE`, so that metrics and logs, whose foreign keys point here, need not wait.
    """
    return session.scalars(
        select(Run).where(Run.id == run.id).with_for_update(key_share=True).execution_options(populate_existing=True)
    ).one()


def lock_order(session: Session, run: Run) -> None:
    """Taken before a transaction locks, and waits for, the rows of several runs of a project, so that two such
    never wait for each other. Locking a single row, or skipping locked ones, does not need it.
    """
    session.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended('runs of ' || :project, 0))"),
        {"project": str(run.project_id)},
    )
