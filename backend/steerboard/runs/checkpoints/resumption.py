"""Whether a run can be resumed, and what is known of the point that it would start from."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.runs.checkpoints import stored as stored_checkpoints
from steerboard.runs.state.lifecycle import why_not_resumable
from steerboard.runs.state.transitions import ENDED
from steerboard.runs.tables import Run, RunInput, RunLog
from steerboard_contracts.run_kinds import any_kind_of


class Resumption(NamedTuple):
    """`continues`: whether work that was done is kept; without, a run that is resumed starts from the beginning."""

    resumable: bool
    hint: str
    continues: bool = True


def resumption(session: Session, run: Run) -> Resumption:
    """What resuming the run would do. All that is known here of checkpoints on a worker's disk is that a stage reported
    them."""
    refusal = why_not_resumable(session, run)
    if refusal is not None:
        return Resumption(False, " ".join(filter(None, (f"{refusal.detail}.", refusal.hint))))
    parent = session.get(Run, run.parent_id) if run.parent_id else None
    if parent is not None and parent.state in ENDED:
        part = "It is a shard of" if run.shard is not None else "It belongs to"
        return Resumption(False, f"{part} run {parent.name}, which has ended. Resume run {parent.name}.")
    if run.kind == "evaluate":
        return Resumption(True, "Continues with the answers and rewards that its evaluation still lacks.")
    if run.attempt == 0:
        return _from_the_start("it has not run yet")
    kept = _kept(session, run)
    if kept == "checkpoint":
        newest = next(iter(stored_checkpoints.stored(session, run.id)), None)
        return _from_checkpoint(_checkpoint_step(session, run), newest.step if newest else None)
    if kept == "rows":
        return Resumption(True, "Continues after the finished rows, on a worker that still has them on disk.")
    if kept == "verdicts":
        return Resumption(True, "Asks what has no verdict yet; answers that were paid for are not paid for again.")
    return _from_the_start("this kind of run makes no checkpoints")


def _from_the_start(why: str) -> Resumption:
    return Resumption(True, f"Starts from the beginning: {why}.", continues=False)


def _kept(session: Session, run: Run) -> str | None:
    """What it keeps of its work while it runs; rows without saying so as a checkpoint."""
    kind = any_kind_of(run.kind, run.method)
    if kind is None:
        return None
    # Comparisons are kept, and choosing by rewards takes a moment.
    by_rewards = run.kind == "select" and session.get(RunInput, (run.id, "judge")) is None
    return None if by_rewards else kind.resumes


def _from_checkpoint(reported: int | None, stored: int | None) -> Resumption:
    if stored is not None and stored >= (reported or 0):
        return Resumption(True, f"Continues from the checkpoint at step {stored}, on any worker.")
    if reported is None:
        return _from_the_start("no checkpoint was reported")
    hint = f"Continues from the checkpoint at step {reported}, on a worker that still has it on disk"
    return Resumption(True, hint + (f"; on any other from that at step {stored}." if stored is not None else "."))


def _checkpoint_step(session: Session, run: Run) -> int | None:
    """The step of the newest checkpoint that the run's log reports."""
    line = session.scalar(
        select(RunLog.message)
        .where(RunLog.run_id == run.id, RunLog.message.regexp_match("^checkpoint at step [0-9]{1,9}$"))
        .order_by(RunLog.id.desc())
        .limit(1)
    )
    return int(line.rpartition(" ")[2]) if line else None
