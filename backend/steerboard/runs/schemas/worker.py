"""The API's schemas of workers and queues."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from pydantic import BaseModel, Field

from steerboard.runs.schemas.runs import PipelineRef


class WorkerRun(BaseModel):
    """What a worker is doing. `name` is the stage's where it belongs to a pipeline; `project` is a name."""

    id: uuid.UUID
    project: str
    name: str
    kind: str
    method: str | None
    pipeline: PipelineRef | None


class WorkerOut(BaseModel):
    """`alive`: its heartbeat is fresh by the database's clock. A worker can be `busy` with a run of a project that
    you may not read; `run` is null then."""

    id: uuid.UUID
    name: str
    pool: str
    host: str
    pid: int
    devices: dict[str, Any]
    busy: bool
    run_id: uuid.UUID | None
    run: WorkerRun | None
    holds: list[str] = Field(
        default=[],
        description="Names of the models that it keeps loaded after comparisons and curves, in alphabetical order: "
        "those of projects that you may read. What battles of an arena load and unload changes nothing here.",
    )
    started_at: dt.datetime
    heartbeat_at: dt.datetime
    alive: bool


class QueueOut(BaseModel):
    """One pool: how many runs wait and run in it, and how many workers serve it."""

    pool: str
    pending: int
    queued: int
    running: int
    workers: int
    oldest_queued_at: dt.datetime | None


class QueuedRun(BaseModel):
    """`position` counts the runs of all projects; those paused until `not_before` come last."""

    position: int
    id: uuid.UUID
    name: str
    kind: str
    method: str | None
    project: str
    pipeline_id: uuid.UUID | None
    pipeline: PipelineRef | None
    parent_id: uuid.UUID | None
    shard: int | None
    priority: int
    not_before: dt.datetime | None
    created_by: str
    queued_at: dt.datetime | None


class QueueRuns(BaseModel):
    """`queued` counts the runs of all projects, `runs` holds those of yours."""

    pool: str
    queued: int
    runs: list[QueuedRun]
