"""The result file of a job: its run's metrics as CSV, a line for each step, made when it is asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.openai_api.errors import unknown
from steerboard.openai_api.files.naming import RESULTS_PURPOSE, file_out
from steerboard.openai_api.ids import RESULTS, meant
from steerboard.openai_api.jobs.presenters import seconds
from steerboard.openai_api.tables import FineTuningJob
from steerboard.runs.tables import Metric, Run
from steerboard_contracts.metric_order import DEVICE, importance

# Ours that have a name in OpenAI's files.
OPENAI_NAMES = {"loss": "train_loss", "eval_loss": "valid_loss"}
_ROWS_AT_ONCE = 5000


class Sink(Protocol):
    def write(self, content: bytes, /) -> object: ...


class _Counter:
    def __init__(self) -> None:
        self.bytes = 0

    def write(self, content: bytes, /) -> None:
        self.bytes += len(content)


def run_of_results(session: Session, project: Project, id_: str) -> Run:
    """Raises `NotFound`, also where the job has no run that succeeded."""
    job_id = meant(RESULTS, id_)
    run = session.scalar(
        select(Run)
        .join(FineTuningJob, FineTuningJob.run_id == Run.id)
        .where(FineTuningJob.project_id == project.id, FineTuningJob.id == job_id, Run.state == "succeeded")
    )
    if run is None:
        raise unknown("file", id_)
    return run


def file_of(session: Session, project: Project, id_: str) -> dict[str, Any]:
    """Raises `NotFound`."""
    run = run_of_results(session, project, id_)
    counter = _Counter()
    write(session, run, counter)
    return file_out(id_, name_of(run), RESULTS_PURPOSE, counter.bytes, seconds(run.ended_at) or 0)


def name_of(run: Run) -> str:
    return f"{run.name}-results.csv"


def write(session: Session, run: Run, out: Sink) -> None:
    """`step`, `train_loss` and `valid_loss` first, then all other metrics of the steps."""
    conditions = Metric.run_id == run.id, ~Metric.name.startswith(DEVICE)
    names = sorted(session.scalars(select(Metric.name).where(*conditions).distinct()), key=importance)
    names.sort(key=lambda name: name not in OPENAI_NAMES)
    out.write(_line(["step", *(OPENAI_NAMES.get(name, name) for name in names)]))
    rows = session.execute(
        select(Metric.step, Metric.name, Metric.value).where(*conditions).order_by(Metric.step),
        execution_options={"yield_per": _ROWS_AT_ONCE},
    )
    for step, values in _by_step(iter(rows)):
        out.write(_line([step, *(values.get(name, "") for name in names)]))


def _by_step(rows: Iterator[Any]) -> Iterator[tuple[int, dict[str, float]]]:
    for step, part in groupby(rows, key=lambda row: row.step):
        yield step, {row.name: row.value for row in part}


def _line(values: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()
