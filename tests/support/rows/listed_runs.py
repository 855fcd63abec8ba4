"""Runs with settings, metrics, results and tags, for tests of lists."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.marks.tables import Favourite, ItemMarks
from steerboard.platform.database import new_id
from steerboard.runs.facts.recording import note_end, note_metrics, note_settings
from steerboard.runs.tables import Pipeline
from support.rows.ended_run import ended_run

OWNER = "user:someone"
START = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Listed:
    """What a test knows of a run. `metrics`: by name, the value at each step from 1 on. `hours` after `START`."""

    name: str = "one"
    pipeline: str | None = None
    state: str = "succeeded"
    kind: str = "train"
    method: str | None = "sft"
    settings: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    notes: str = ""
    archived: bool = False
    favourite: bool = False
    device_seconds: float = 0.0
    seconds: float | None = None
    started: bool = False
    hours: int = 0
    by: str = "user:local"


def list_run(
    session: Session, project: Project, one: Listed, pipelines: dict[str, Pipeline] | None = None
) -> uuid.UUID:
    """`pipelines`: those that were made, by name."""
    made = {} if pipelines is None else pipelines
    pipeline = None
    if one.pipeline is not None:
        pipeline = made.get(one.pipeline) or Pipeline(
            id=new_id(),
            project_id=project.id,
            name=one.pipeline,
            recipe={"name": one.pipeline},
            recipe_text="",
            settings={},
            created_by=one.by,
        )
        made[one.pipeline] = pipeline
        session.add(pipeline)
        session.flush()
    run = ended_run(
        project.id,
        name=one.name,
        pipeline_id=pipeline.id if pipeline else None,
        kind=one.kind,
        method=one.method,
        config={"run": one.kind, "method": one.method, **one.settings},
        summary=one.results or None,
        state=one.state,
        reason="as it is",
        created_by=one.by,
        device_seconds=one.device_seconds,
        created_at=START + dt.timedelta(hours=one.hours),
        started_at=START if one.seconds is not None or one.started else None,
        ended_at=START + dt.timedelta(seconds=one.seconds) if one.seconds is not None else None,
    )
    session.add(run)
    session.flush()
    if one.tags or one.notes or one.archived:
        session.add(
            ItemMarks(
                item_id=run.id,
                project_id=project.id,
                type="run",
                tags=list(one.tags),
                notes=one.notes,
                archived_at=START if one.archived else None,
            )
        )
    if one.favourite:
        session.add(Favourite(owner=OWNER, item_id=run.id, project_id=project.id, type="run"))
    session.flush()
    note_settings(session, run)
    for name, values in one.metrics.items():
        note_metrics(session, run, {(name, step): value for step, value in enumerate(values, start=1)})
    note_end(session, run)
    return run.id
