"""How long runs will still train, by the pace of their latest steps."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.runs.tables import Metric, Run, RunAttempt

# Training's own clock: devices times seconds up to each step, without pauses.
_CLOCK = "device_seconds"
_LATEST = 20


def seconds_left(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID, float]:
    """Seconds until the last step of each run that trains and has taken two steps; what follows the last step is not
    in it."""
    left = {run.id: remaining for run in runs if (remaining := _steps_left(run)) is not None}
    if not left:
        return {}
    of_clock = Metric.run_id.in_(left), Metric.name == _CLOCK
    last = (
        select(Metric.run_id, func.max(Metric.step).label("step")).where(*of_clock).group_by(Metric.run_id).subquery()
    )
    steps = func.max(Metric.step) - func.min(Metric.step)
    rows = session.execute(
        select(Metric.run_id, (func.max(Metric.value) - func.min(Metric.value)) / steps / func.max(RunAttempt.devices))
        .join(last, last.c.run_id == Metric.run_id)
        .join(Run, Run.id == Metric.run_id)
        .join(RunAttempt, (RunAttempt.run_id == Run.id) & (RunAttempt.attempt == Run.attempt))
        .where(*of_clock, Metric.step > last.c.step - _LATEST)
        .group_by(Metric.run_id)
        .having(steps > 0)
    )
    return {run_id: left[run_id] * pace for run_id, pace in rows}


def _steps_left(run: Run) -> int | None:
    progress = run.progress or {}
    training = run.state == "running" and progress.get("phase") == "training"
    return progress["total"] - progress["done"] if training else None
