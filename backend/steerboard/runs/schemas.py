"""What the API says about runs and pipelines."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard.runs.kinds import StageKind
from steerboard.runs.states import PipelineState, RunState


class _Out(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class PipelineRef(_Out):
    id: uuid.UUID
    name: str


class RunSummary(_Out):
    """`device_seconds` of finished attempts; of a reused run what it cost when it ran is `reused_device_seconds`."""

    id: uuid.UUID
    name: str
    kind: str
    method: str | None
    state: RunState
    reason: str
    reason_code: str | None
    pipeline_id: uuid.UUID | None
    pipeline: PipelineRef | None
    parent_id: uuid.UUID | None
    shard: int | None
    pool: str
    priority: int
    attempt: int
    max_attempts: int
    progress: dict[str, Any] | None
    device_seconds: float
    failed_device_seconds: float
    reused_from_id: uuid.UUID | None
    created_by: str
    created_at: dt.datetime
    queued_at: dt.datetime | None
    started_at: dt.datetime | None
    ended_at: dt.datetime | None
    cancel_requested_at: dt.datetime | None


class RunInputOut(BaseModel):
    """`label` is the name of the dataset, model or upstream run."""

    name: str
    type: Literal["run", "dataset", "model"]
    id: uuid.UUID
    label: str


class RunOutputOut(BaseModel):
    """A dataset or model by id and name; reports and answers stand in `document`."""

    name: str
    type: str
    id: uuid.UUID | None
    label: str | None
    document: dict[str, Any] | None


class TransitionOut(_Out):
    attempt: int
    from_state: str | None
    to_state: str
    reason: str
    created_at: dt.datetime


class AttemptOut(_Out):
    attempt: int
    worker: str
    devices: int
    started_at: dt.datetime
    heartbeat_at: dt.datetime
    ended_at: dt.datetime | None
    outcome: str | None
    reason: str | None
    device_seconds: float


class RunDetail(RunSummary):
    """`queue_position`: 1 is the next that a worker of the pool takes; null unless queued."""

    queue_position: int | None
    resumable: bool
    resume_hint: str = Field(description="What a resumed run would start from, or why it cannot be resumed.")
    config: dict[str, Any]
    summary: dict[str, Any] | None
    error: dict[str, Any] | None
    reuse: bool
    inputs: list[RunInputOut]
    outputs: list[RunOutputOut]
    timeline: list[TransitionOut]
    attempts: list[AttemptOut]
    shards: list[RunSummary]


class MetricPoint(BaseModel):
    """Steps that fall together are averaged; `low` and `high` are their extremes, so that no spike is hidden."""

    step: int
    value: float
    low: float
    high: float


class MetricSeries(BaseModel):
    """`steps`: how many steps were logged, before down-sampling."""

    name: str
    steps: int
    points: list[MetricPoint]


class LogLine(_Out):
    id: int
    attempt: int
    level: str
    message: str
    created_at: dt.datetime


class PipelineSummary(BaseModel):
    """`stages` counts the runs by state; shards are not counted."""

    id: uuid.UUID
    name: str
    recipe: str
    state: PipelineState
    stages: dict[str, int]
    device_seconds: float
    failed_device_seconds: float
    created_by: str
    created_at: dt.datetime
    ended_at: dt.datetime | None


class PipelineDetail(PipelineSummary):
    runs: list[RunSummary]
    recipe_text: str
    settings: dict[str, Any]


Reference = Annotated[str, Field(min_length=1, max_length=200, description="A name or an id.")]


class RunWork(BaseModel):
    """What a run of its own does. `inputs` name datasets and models: `{"model": "demo-1.dt"}`."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any]
    inputs: dict[str, Reference] = {}


class RunCreate(RunWork):
    """A run of its own, outside any pipeline. `inputs` name datasets and models: `{"model": "demo-1.dt"}`."""

    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = None
    pool: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")] = "default"
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    reuse: bool = True


class RunClone(BaseModel):
    """The same run again with fields of its config and inputs changed. `config` is merged at its top level."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = None
    config: dict[str, Any] = {}
    inputs: dict[str, Reference] = {}
    pool: Annotated[str | None, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")] = None
    reuse: bool = True


class RunResume(BaseModel):
    """`config`: changes of how the work is cut up, such as a failed run's `error.fix.changes`."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any] = {}


class RunPlace(BaseModel):
    """Where a waiting run stands. `place` is among the runs of the pool that have its priority."""

    model_config = ConfigDict(extra="forbid")

    priority: Annotated[int | None, Field(ge=-100, le=100)] = None
    place: Literal["first", "last"] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> RunPlace:
        if self.priority is None and self.place is None:
            raise ValueError("give a priority or a place")
        return self


class SlotOut(BaseModel):
    """One input of a run kind. `many`: a list, named `NAME.0`, `NAME.1`, ..."""

    name: str
    type: Literal["model", "dataset"]
    allowed: list[str]
    many: bool
    required: bool


class RunKindOut(BaseModel):
    """What a launch form needs: the config's JSON Schema and the inputs."""

    kind: str
    method: str | None
    description: str
    inputs: list[SlotOut]
    config_schema: dict[str, Any]

    @classmethod
    def of(cls, kind: StageKind) -> RunKindOut:
        slots = [
            SlotOut(name=n, type=s.thing, allowed=sorted(s.allowed), many=s.many, required=s.required)
            for n, s in kind.slots.items()
        ]
        return cls(
            kind=kind.run,
            method=kind.method,
            description=(kind.config.__doc__ or "").strip(),
            inputs=slots,
            config_schema=kind.config.model_json_schema(),
        )


class WorkerRun(BaseModel):
    """What a worker is at. `name` is the stage's where it belongs to a pipeline; `project` is a name."""

    id: uuid.UUID
    project: str
    name: str
    kind: str
    method: str | None
    pipeline: PipelineRef | None


class WorkerOut(_Out):
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
        default=[], description="Names of the models that it keeps loaded: those of projects that you may read."
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
