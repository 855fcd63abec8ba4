"""Whether a run can be resumed, and what is known of the point that it would start from."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.runs.lifecycle import why_not_resumable
from steerboard.runs.tables import Run, RunLog
from steerboard.runs.transitions import ENDED

_FROM_THE_START = "Starts from the beginning"
# Stages that keep each row they have finished, without saying so as a checkpoint.
_KEEP_ROWS = ("generate", "score", "evaluate", "benchmark")
_KEEP_ANSWERS = "judge"


def resumption(session: Session, run: Run) -> tuple[bool, str]:
    """(resumable, hint). Checkpoints lie on their worker's disk: known here is only that a stage reported one."""
    refusal = why_not_resumable(session, run)
    if refusal is not None:
        return False, " ".join(filter(None, (f"{refusal.detail}.", refusal.hint)))
    parent = session.get(Run, run.parent_id) if run.parent_id else None
    if parent is not None and parent.state in ENDED:
        return False, f"It is a shard of run {parent.name}, which has ended. Resume run {parent.name}."
    if run.attempt == 0:
        return True, f"{_FROM_THE_START}: it has not run yet."
    if run.kind == "train":
        return True, _from_checkpoint(_checkpoint_step(session, run))
    if run.kind in _KEEP_ROWS:
        return True, "Goes on after the rows it had finished, on a worker that still has them on its disk."
    if run.kind == _KEEP_ANSWERS:
        return True, "Asks what has no verdict yet; answers that were paid for are not paid for again."
    return True, f"{_FROM_THE_START}: this kind of run makes no checkpoints."


def _from_checkpoint(step: int | None) -> str:
    if step is None:
        return f"{_FROM_THE_START}: no checkpoint was reported."
    return f"Goes on from the checkpoint at step {step}, on a worker that still has it on its disk."


def _checkpoint_step(session: Session, run: Run) -> int | None:
    """The step of the newest checkpoint that the run's log reports."""
    line = session.scalar(
        select(RunLog.message)
        .where(RunLog.run_id == run.id, RunLog.message.regexp_match("^checkpoint at step [0-9]{1,9}$"))
        .order_by(RunLog.id.desc())
        .limit(1)
    )
    return int(line.rpartition(" ")[2]) if line else None
