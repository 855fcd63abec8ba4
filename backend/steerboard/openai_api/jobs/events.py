"""The events of a job, newest first: its import, the changes of its run's state, and the metrics of its steps.

They are not stored: each follows from other rows, and its id names it. Their order is that of the attempts; the steps
of an attempt come between its beginning and its end.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, select, tuple_
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.openai_api.ids import EVENT, FILE, JOB, shown
from steerboard.openai_api.jobs.presenters import seconds
from steerboard.openai_api.jobs.results import OPENAI_NAMES
from steerboard.openai_api.lists import listed, unknown_after
from steerboard.openai_api.tables import FineTuningJob
from steerboard.runs.tables import Metric, Run, RunAttempt, RunTransition
from steerboard_contracts.methods import method_of
from steerboard_contracts.metric_order import FIRST_METRICS
from steerboard_contracts.wording import counted

_WALL_SECONDS = "wall_seconds"
_STEP = re.compile(rf"{EVENT}[0-9a-f]{{32}}-(\d{{1,9}})-(\d{{1,9}})", re.ASCII)
_LEVELS = {"failed": "error", "cancelled": "warn", "paused": "warn"}

# (attempt, part, number): the beginning of an attempt, its steps, what came after it.
Key = tuple[int, int, int]
_BEGIN, _STEPS, _AFTER = 0, 1, 2


@dataclass(frozen=True)
class _Event:
    key: Key
    body: dict[str, Any]


def events_out(session: Session, job: FineTuningJob, after: str | None, limit: int) -> dict[str, Any]:
    """Raises `InvalidRequest` (`bad_cursor`)."""
    run = session.get(Run, job.run_id) if job.run_id else None
    fixed = [*_before_run(session, job), *(_changes(session, job, run) if run is not None else [])]
    before = _key_of(fixed, after) if after is not None else None
    steps = _steps(session, job, run, before, limit + 1) if run is not None else []
    all_events = sorted(fixed + steps, key=lambda event: event.key, reverse=True)
    page = [event.body for event in all_events if before is None or event.key < before]
    return listed(page[:limit], more=len(page) > limit)


def _key_of(fixed: list[_Event], after: str) -> Key:
    known = next((event.key for event in fixed if event.body["id"] == after), None)
    step = _STEP.fullmatch(after)
    if known is None and step is None:
        raise unknown_after(after)
    return known if known is not None else (int(step[1]), _STEPS, int(step[2]))  # type: ignore[index]


def _event(
    job: FineTuningJob,
    key: Key,
    tail: str,
    at: dt.datetime,
    message: str,
    *,
    level: str = "info",
    data: dict[str, Any] | None = None,
) -> _Event:
    return _Event(
        key,
        {
            "id": f"{shown(EVENT, job.id)}-{tail}",
            "object": "fine_tuning.job.event",
            "created_at": seconds(at),
            "level": level,
            "message": message,
            "data": data or {},
            "type": "metrics" if data else "message",
        },
    )


def _before_run(session: Session, job: FineTuningJob) -> Iterator[_Event]:
    yield _event(job, (-1, 0, 0), "created", job.created_at, f"Created fine-tuning job: {shown(JOB, job.id)}")
    file = shown(FILE, job.training_file)
    if job.import_id is not None:
        yield _event(job, (-1, 0, 1), "validating", job.created_at, f"Validating training file: {file}")
    dataset = session.get(Dataset, job.dataset_id) if job.dataset_id else None
    if dataset is not None:
        rows = f"{counted(dataset.rows, 'row')}, of which {dataset.held_out_rows:,} are held out"
        message = f"The training file is the dataset {dataset.name}: {rows}"
        yield _event(job, (-1, 0, 2), "dataset", max(dataset.created_at, job.created_at), message)
    if job.run_id is None and job.ended_at is not None:
        message = job.error["message"] if job.error else "The job was cancelled"
        level = _LEVELS[job.state]
        yield _event(job, (-1, 0, 3), job.state, job.ended_at, message, level=level)


def _changes(session: Session, job: FineTuningJob, run: Run) -> Iterator[_Event]:
    """Ids are by time, so their number orders those of one attempt."""
    rows = session.scalars(select(RunTransition).where(RunTransition.run_id == run.id).order_by(RunTransition.id))
    for number, row in enumerate(rows):
        part = _BEGIN if row.to_state == "running" else _AFTER
        message = f"The run {run.name} is {row.to_state}: {row.reason}" if row.reason else f"The run is {row.to_state}"
        level = _LEVELS.get(row.to_state, "info")
        yield _event(job, (row.attempt, part, number), row.id.hex, row.created_at, message, level=level)


def _steps(session: Session, job: FineTuningJob, run: Run, before: Key | None, limit: int) -> list[_Event]:
    method = method_of(run.method)
    first = method.first_metrics if method is not None else FIRST_METRICS
    names = {*OPENAI_NAMES, *first, _WALL_SECONDS}
    conditions: list[ColumnElement[bool]] = [Metric.run_id == run.id]
    if before is not None:
        place = (before[0], before[2] if before[1] == _STEPS else 2**31 - 1 if before[1] == _AFTER else -1)
        conditions.append(tuple_(Metric.attempt, Metric.step) < tuple_(*place))
    # Each step has its loss; a distinct over all names would read them all.
    shown_steps = select(Metric.attempt, Metric.step).where(*conditions, Metric.name == "loss")
    steps = [
        step
        for _, step in session.execute(shown_steps.order_by(Metric.attempt.desc(), Metric.step.desc()).limit(limit))
    ]
    if not steps:
        return []
    began = session.scalar(
        select(RunAttempt.started_at).where(RunAttempt.run_id == run.id).order_by(RunAttempt.attempt).limit(1)
    )
    rows = session.execute(
        select(Metric.step, Metric.attempt, Metric.name, Metric.value)
        .where(Metric.run_id == run.id, Metric.step.in_(steps), Metric.name.in_(names))
        .order_by(Metric.step)
    )
    total = (run.progress or {}).get("total")
    return [
        _step(job, list(part), began or job.created_at, total) for _, part in groupby(rows, key=lambda row: row.step)
    ]


def _step(job: FineTuningJob, rows: list[Any], began: dt.datetime, total: int | None) -> _Event:
    values = {row.name: row.value for row in rows}
    step, attempt = rows[0].step, max(row.attempt for row in rows)
    at = began + dt.timedelta(seconds=values.pop(_WALL_SECONDS, 0.0))
    data = {OPENAI_NAMES.get(name, name): value for name, value in values.items()}
    figures = ", ".join(f"{name}={value:.4g}" for name, value in sorted(data.items()))
    message = f"Step {step}/{total}: {figures}" if total else f"Step {step}: {figures}"
    facts = {"step": step, "total_steps": total, **data}
    return _event(job, (attempt, _STEPS, step), f"{attempt}-{step}", at, message, data=facts)
