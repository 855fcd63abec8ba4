"""What of a run a tracker has not had yet, read from the database."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.names import valid_name
from steerboard.platform.settings import get_settings
from steerboard.registry.tables import Model
from steerboard.runs.tables import Pipeline, Run, RunOutput
from steerboard.trackers.destinations.protocol import Batch, Ending, ExportedRun
from steerboard.trackers.tables import RunExport

# The most steps of each metric in one batch.
MOST_STEPS = 500

# The names come from the index, entry by entry, so that what was exported before is not read again.
_NEW = text(
    """
    WITH RECURSIVE named AS (
        (SELECT name FROM metrics WHERE run_id = :run ORDER BY name LIMIT 1)
        UNION ALL
        SELECT (SELECT m.name FROM metrics m WHERE m.run_id = :run AND m.name > named.name ORDER BY m.name LIMIT 1)
        FROM named WHERE named.name IS NOT NULL
    )
    SELECT named.name, point.step, point.value
    FROM named CROSS JOIN LATERAL (
        SELECT step, value FROM metrics
        WHERE run_id = :run AND name = named.name AND step > :after ORDER BY step LIMIT :most
    ) AS point
    WHERE named.name IS NOT NULL
    """
)


def next_batch(session: Session, export: RunExport, run: Run, after: int | None) -> Batch | None:
    """The next points behind step `after`, and the run's end with the last of them. None where there is nothing new.

    The newest step of a run that has not ended is left for later: other metrics of it may follow.
    """
    points, more = _points(session, run.id, after)
    ended = run.ended_at is not None
    if not ended and not more:
        points = points[:-1]
    end = _ending(session, run) if ended and not more else None
    if not points and end is None and export.remote is not None:
        return None
    return Batch(run=_exported(session, run), after=after, points=points, end=end, remote=export.remote)


def _points(session: Session, run_id: uuid.UUID, after: int | None) -> tuple[list[tuple[int, dict[str, float]]], bool]:
    """Complete steps in rising order, and whether there are more behind them."""
    parameters = {"run": run_id, "after": -1 if after is None else after, "most": MOST_STEPS}
    counts: dict[str, int] = {}
    lasts: dict[str, int] = {}
    steps: dict[int, dict[str, float]] = {}
    for name, step, value in session.execute(_NEW, parameters):
        counts[name] = counts.get(name, 0) + 1
        lasts[name] = max(step, lasts.get(name, step))
        steps.setdefault(step, {})[name] = value
    cut = [lasts[name] for name, count in counts.items() if count == MOST_STEPS]
    until = min(cut) if cut else None
    return [(step, steps[step]) for step in sorted(steps) if until is None or step <= until], until is not None


def _exported(session: Session, run: Run) -> ExportedRun:
    project = session.get_one(Project, run.project_id)
    pipeline = session.get(Pipeline, run.pipeline_id) if run.pipeline_id is not None else None
    name = f"{pipeline.name}.{run.name}" if pipeline is not None else run.name
    return ExportedRun(
        id=run.id.hex,
        # The end of the id is random, so that two runs of one name have a folder each.
        label=f"{valid_name(name)[:100]}-{run.id.hex[-6:]}",
        project=project.name,
        kind=run.kind,
        method=run.method,
        url=_page(project, f"runs/{run.id}"),
        attempt=run.attempt,
        created_ms=_milliseconds(run.created_at),
        settings=run.config,
    )


def _ending(session: Session, run: Run) -> Ending:
    assert run.ended_at is not None
    return Ending(
        state=run.state,
        reason=run.reason,
        ended_ms=_milliseconds(run.ended_at),
        summary=run.summary or {},
        outputs=_outputs(session, run),
    )


def _outputs(session: Session, run: Run) -> dict[str, str]:
    project = session.get_one(Project, run.project_id)
    rows: Any = session.execute(
        select(RunOutput.name, Dataset.name, Model.name)
        .where(RunOutput.run_id == run.id)
        .outerjoin(Dataset, Dataset.id == RunOutput.dataset_id)
        .outerjoin(Model, Model.id == RunOutput.model_id)
        .order_by(RunOutput.name)
    )
    links = {}
    for name, dataset, model in rows:
        if model is not None:
            links[name] = _page(project, f"models/{model}")
        elif dataset is not None:
            links[name] = _page(project, f"datasets/{dataset}")
        else:
            links[name] = _page(project, f"runs/{run.id}")
    return links


def _page(project: Project, path: str) -> str:
    return f"{get_settings().public_url}/p/{project.name}/{path}"


def _milliseconds(time: dt.datetime) -> int:
    return int(time.timestamp() * 1000)
