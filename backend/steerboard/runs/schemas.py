"""The API's schemas of runs and pipelines."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard.runs.state.states import PipelineState, RunState
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec, PreviewKind
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.watching.health import Finding
from steerboard_contracts.watching.ledger import Ledger, PhaseCost


class _Out(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class PipelineRef(_Out):
    id: uuid.UUID
    name: str


class RunSummary(_Out):
    """`device_seconds` of finished attempts; of a reused run what it cost when it ran is `reused_device_seconds`.
    `paused_seconds` of pauses that are over; `paused_since` of the one that lasts."""

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
    paused_seconds: float
    paused_since: dt.datetime | None
    cancel_requested_at: dt.datetime | None


class RunInputOut(BaseModel):
    """`label` is the name of the dataset, model or upstream run."""

    name: str
    type: Literal["run", "dataset", "model"]
    id: uuid.UUID
    label: str


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
    started_at: dt.datetime
    heartbeat_at: dt.datetime
    ended_at: dt.datetime | None
    outcome: str | None
    reason: str | None
    device_seconds: float
    phases: list[PhaseCost] = Field(description="Of its device-seconds; they add up to them once it has ended.")


class RunChange(BaseModel):
    """Settings that were changed while the run trained. `step`: the first optimiser step that has them; null while
    none has."""

    number: int
    values: dict[str, float]
    step: int | None
    by: str
    at: dt.datetime


class RunFinding(Finding):
    """A health rule that came to hold after `step`."""

    at: dt.datetime


class RunDetail(RunSummary):
    """`queue_position`: 1 is the next that a worker of the pool takes; null unless queued. `ledger` counts all of its
    attempts, and those of its shards or parts."""

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
    pause_requested_at: dt.datetime | None
    changes: list[RunChange]
    findings: list[RunFinding]
    changeable: dict[str, float] = Field(description="Settings that can change while it trains, as they are now.")
    attempts: list[AttemptOut]
    ledger: Ledger
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
    """`ledger`: of all its stages; the work of one that was reused counts once, and is named."""

    ledger: Ledger
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


class RunChanges(BaseModel):
    """`config`: settings of the run, those that its `changeable` names, with their new values."""

    model_config = ConfigDict(extra="forbid")

    config: Annotated[dict[str, Finite], Field(min_length=1, max_length=20)]


class RunResume(BaseModel):
    """`config`: changes of how the work is cut up, such as a failed run's `error.fix.changes`."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any] = {}


class RunPlace(BaseModel):
    """A waiting run's position. `place` is among the runs of the pool that have its priority."""

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


class PreviewOut(BaseModel):
    """What the form shows of the data; `fields` maps what the preview takes to fields of the config."""

    kind: PreviewKind
    fields: dict[str, str]


class MethodOut(BaseModel):
    """A training method. `condition`: the config's field with the default condition of its policies; null if they take
    none. `package`: the Python package that provides it; null for the platform's own."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    title: str
    label: str
    source: str
    outputs: list[str]
    sequences: int
    learns_from_rewards: bool
    baseline: bool
    condition: str | None
    preview: PreviewOut | None
    package: str | None
    version: str | None

    @classmethod
    def of(cls, spec: MethodSpec) -> MethodOut:
        preview = {"kind": spec.preview.kind, "fields": dict(spec.preview.fields)} if spec.preview else None
        fields = {name: getattr(spec, name) for name in cls.model_fields}
        return cls.model_validate({**fields, "outputs": list(spec.outputs), "preview": preview})


class MethodLeftOut(BaseModel):
    """A method of another package that is installed and cannot be used. `name` is its entry point's."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    package: str
    code: str
    detail: str


class MethodsOut(BaseModel):
    """The training methods that the server knows, and those that it had to leave out."""

    methods: list[MethodOut]
    left_out: list[MethodLeftOut]


class RunKindCard(BaseModel):
    """A run kind that people start, or training by one method. `key` names it in the address of its form.

    `makes`: role of the model or kind of the dataset that comes out by default; `makes_by`: a field of the config that
    decides it, and what comes out by its value. `for_data` and `for_model`: what the page of a dataset of that kind, or
    of a model of that role, offers. `form`: fields that the form shows first.
    """

    key: str
    kind: str
    method: str | None
    title: str
    about: str
    inputs: list[SlotOut]
    makes: str | None
    makes_type: Literal["model", "dataset"] | None
    makes_by: tuple[str, dict[str, str]] | None
    needs_field: Annotated[
        dict[str, str], Field(description="By kind of dataset, a field that each of its rows must have.")
    ]
    form: list[str]
    for_data: dict[str, str]
    for_model: dict[str, str]
    training: MethodOut | None

    @classmethod
    def of(cls, kind: RunKindSpec) -> Self:
        return cls.model_validate(cls._fields(kind))

    @classmethod
    def _fields(cls, kind: RunKindSpec) -> dict[str, Any]:
        return {
            "key": kind.key,
            "kind": kind.run,
            "method": kind.method,
            "title": kind.title,
            "about": kind.about,
            "inputs": [
                SlotOut(name=n, type=s.thing, allowed=sorted(s.allowed), many=s.many, required=s.required)
                for n, s in kind.slots.items()
            ],
            "makes": kind.makes,
            "makes_type": kind.makes_thing,
            "makes_by": kind.makes_by,
            "needs_field": dict(kind.needs_field),
            "form": list(kind.form),
            "for_data": dict(kind.for_data),
            "for_model": dict(kind.for_model),
            "training": MethodOut.of(kind.training) if kind.training else None,
        }


class RunKindOut(RunKindCard):
    """With what a launch form needs: the config's JSON Schema."""

    description: str
    config_schema: dict[str, Any]

    @classmethod
    def _fields(cls, kind: RunKindSpec) -> dict[str, Any]:
        return super()._fields(kind) | {
            "description": (kind.config.__doc__ or "").strip(),
            "config_schema": kind.config.model_json_schema(),
        }
