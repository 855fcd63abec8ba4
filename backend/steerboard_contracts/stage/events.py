"""What a stage reports while it runs, one line of JSON each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.online.answer_groups import AnswerGroup
from steerboard_contracts.stage.outputs import StageOutput
from steerboard_contracts.watching.health import Finding
from steerboard_contracts.watching.inspected_pairs import LivePair
from steerboard_contracts.watching.ledger import Phase, PhaseTime
from steerboard_contracts.watching.probing import ProbeAnswer, ProbePrompt
from steerboard_contracts.watching.warnings import RunWarning


class Progress(BaseModel):
    """How far a stage is; `unit` is plural: steps, prompts, rows, answers."""

    type: Literal["progress"] = "progress"
    done: int
    total: int
    unit: str
    phase: str = ""


class Metrics(BaseModel):
    """Values at an optimiser step. Emitting a (name, step) again overwrites it."""

    type: Literal["metrics"] = "metrics"
    step: int
    values: dict[str, float]


class Probed(BaseModel):
    """Answers to a run's probe prompts after an optimiser step, 0 for the model that training starts from; an answer
    for each prompt. `condition`: what the model was asked for. Emitting a step again overwrites it."""

    type: Literal["probed"] = "probed"
    step: int
    condition: Condition | None
    prompts: list[ProbePrompt]
    answers: list[ProbeAnswer]


class Sampled(BaseModel):
    """The answers to one prompt of an optimiser step that sampled. Emitting a (step, place) again overwrites it."""

    type: Literal["sampled"] = "sampled"
    step: int
    group: AnswerGroup


class Inspected(BaseModel):
    """What the model makes of an inspected pair after an optimiser step; `place` among them. Emitting a place again
    overwrites it: while a run is active, the newest step is kept."""

    type: Literal["inspected"] = "inspected"
    step: int
    place: int
    found: LivePair


class Prepared(BaseModel):
    """What is known of the work before it begins: figures for the run's summary, and what its owner must know. A later
    one replaces it."""

    type: Literal["prepared"] = "prepared"
    summary: dict[str, Any] = {}
    warnings: list[RunWarning] = []


class Changed(BaseModel):
    """Settings that changed while the run trained: change `number` came into force at optimiser step `step`."""

    type: Literal["changed"] = "changed"
    number: int
    step: int
    values: dict[str, float]


class HealthFound(Finding):
    """A health rule that holds. Emitting a (step, rule) again changes nothing."""

    type: Literal["health"] = "health"


class Spent(BaseModel):
    """What each phase has taken since the attempt began. A later one replaces it, so none counts twice."""

    type: Literal["spent"] = "spent"
    phases: dict[Phase, PhaseTime]


class Log(BaseModel):
    type: Literal["log"] = "log"
    level: Literal["info", "warning", "error"] = "info"
    message: str


class Checkpointed(BaseModel):
    type: Literal["checkpoint"] = "checkpoint"
    step: int
    path: str


class Succeeded(BaseModel):
    """The last line of a stage that worked. `summary` is a few figures for tables: losses, accuracies, counts."""

    type: Literal["succeeded"] = "succeeded"
    outputs: list[StageOutput]
    summary: dict[str, Any] = {}


class Fix(BaseModel):
    """Changes of a run's config, none of which changes its result by more than rounding, with which it should work.

    `says` puts them in words, such as `micro-batch 2, accumulation 8`.
    """

    changes: dict[str, Any]
    says: str


class Failed(BaseModel):
    """The last line of a stage that could not continue."""

    type: Literal["failed"] = "failed"
    code: str
    detail: str
    hint: str | None = None
    errors: list[ErrorLocation] = []
    retryable: bool = False
    fix: Fix | None = None


class Paused(BaseModel):
    """The last line of a stage that was asked to pause, by a person or a health rule; its checkpoint is in place.
    `by_rule`: the rule's kind."""

    type: Literal["paused"] = "paused"
    step: int
    by_rule: str | None = None
    reason: str = ""


StageEvent = Annotated[
    Progress
    | Metrics
    | Probed
    | Sampled
    | Inspected
    | Prepared
    | Changed
    | HealthFound
    | Spent
    | Log
    | Checkpointed
    | Succeeded
    | Paused
    | Failed,
    Field(discriminator="type"),
]
STAGE_EVENT: TypeAdapter[StageEvent] = TypeAdapter(StageEvent)
