"""The API's schemas of runs and pipelines."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard.marks.schemas import Marks
from steerboard.runs.state.states import PipelineState, RunState
from steerboard_contracts.held_out_changes import HeldOutChange
from steerboard_contracts.metric_order import MetricGroup
from steerboard_contracts.watching.health import Finding
from steerboard_contracts.watching.ledger import Ledger, PhaseCost
from steerboard_contracts.watching.warnings import RunWarning


class _Out(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class RowCheck(BaseModel):
    """What tokenising `checked` of `rows` rows has shown, once `state` is succeeded. `too_long`: with more tokens than
    max_length leaves. `refusal`: why the training run would fail; a launch is refused for it, too."""

    run_id: uuid.UUID
    state: RunState
    reason: str
    rows: int
    checked: int
    too_long: int
    refused: int
    refusal: str | None
    warning: RunWarning | None


class PipelineRef(_Out):
    id: uuid.UUID
    name: str


class RunSummary(_Out):
    """`device_seconds` of finished attempts; of a reused run what it cost when it ran is `reused_device_seconds`.
    `failed_attempts` and `interruptions` since it was created or resumed: an interrupted attempt lost its machine or
    the platform, and does not count as failed. `paused_seconds` of pauses that are over; `paused_since` of the one that
    lasts. `seconds_left` until the last step, by the pace of the latest ones; null unless it trains."""

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
    failed_attempts: int
    max_attempts: int
    interruptions: int
    max_interruptions: int
    progress: dict[str, Any] | None
    seconds_left: float | None
    warnings: list[RunWarning]
    device_seconds: float
    failed_device_seconds: float
    reused_from_id: uuid.UUID | None
    created_by: str
    created_at: dt.datetime
    queued_at: dt.datetime | None
    started_at: dt.datetime | None
    ended_at: dt.datetime | None
    paused_seconds: float
    paused_since: dt.datetime | None
    cancel_requested_at: dt.datetime | None


class RunInputOut(BaseModel):
    """`label` is the name of the dataset, model or upstream run. `content`: the hash of what was read, equal where two
    runs read the same under other names; None until it is made."""

    name: str
    type: Literal["run", "dataset", "model"]
    id: uuid.UUID
    label: str
    content: str | None = None


class RunOutputOut(BaseModel):
    """A dataset or model by id and name; reports and answers are in `document`."""

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
    threads: int | None = Field(
        description="CPU threads of each of its processes; null before it starts, and of earlier releases."
    )
    started_at: dt.datetime
    heartbeat_at: dt.datetime
    ended_at: dt.datetime | None
    outcome: str | None
    reason: str | None
    device_seconds: float
    phases: list[PhaseCost] = Field(description="Shares of its device-seconds; they add up to them once it has ended.")


class RunChange(BaseModel):
    """Settings that were changed while the run trained. `step`: the first optimiser step that has them; null while
    none has."""

    number: int
    values: dict[str, float]
    step: int | None
    by: str
    at: dt.datetime


class RunFinding(Finding):
    """A health rule that was met after `step`."""

    at: dt.datetime


class RunDetail(RunSummary):
    """`queue_position`: 1 is the next that a worker of the pool takes; null unless queued. `ledger` counts all of its
    attempts, and those of its shards or parts."""

    queue_position: int | None
    resumable: bool
    continues: bool = Field(
        description="Whether a resumed run continues its work; one that keeps none starts from the beginning."
    )
    resume_hint: str = Field(description="What a resumed run would start from, or why it cannot be resumed.")
    config: dict[str, Any]
    summary: dict[str, Any] | None
    error: dict[str, Any] | None
    reuse: bool
    inputs: list[RunInputOut]
    held_out_changes: list[HeldOutChange] = Field(
        description="Versions of its datasets that changed held-out rows, on which it is measured."
    )
    outputs: list[RunOutputOut]
    timeline: list[TransitionOut]
    pausable: bool = Field(description="Whether it can be paused, or is about to be.")
    pause_requested_at: dt.datetime | None
    changes: list[RunChange]
    findings: list[RunFinding]
    changeable: dict[str, float] = Field(description="Settings that can change while it trains, as they are now.")
    attempts: list[AttemptOut]
    ledger: Ledger
    evaluation: str | None = Field(description="The evaluation that it was started for, or that it works for.")
    shards: list[RunSummary]
    marks: Marks


class MetricPoint(BaseModel):
    """Steps that fall together are averaged; `low` and `high` are their extremes, so that no spike is hidden."""

    step: int
    value: float
    low: float
    high: float


class MetricSeries(BaseModel):
    """`steps`: how many steps were logged, before down-sampling. `group`: what pages show it under; `first` is what the
    method names as important."""

    name: str
    group: MetricGroup
    steps: int
    points: list[MetricPoint]


class LogLine(_Out):
    id: int
    attempt: int
    level: str
    message: str
    created_at: dt.datetime


class PipelineSummary(BaseModel):
    """`stages` counts the runs by state; shards are not counted. `started_at`: when a worker took the first of them;
    null where none was taken, since they wait, were reused, or were cancelled before."""

    id: uuid.UUID
    name: str
    recipe: str
    state: PipelineState
    stages: dict[str, int]
    device_seconds: float
    failed_device_seconds: float
    created_by: str
    created_at: dt.datetime
    started_at: dt.datetime | None
    ended_at: dt.datetime | None


class PipelineDetail(PipelineSummary):
    """`ledger`: of all its stages; the work of one that was reused counts once, and is named."""

    ledger: Ledger
    runs: list[RunSummary]
    recipe_text: str
    settings: dict[str, Any]
