"""The API's schemas of runs that no one has started yet."""

from __future__ import annotations

import uuid
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from steerboard.datasets.schemas import Bin
from steerboard_contracts.fields import Positive
from steerboard_contracts.planning.memory import MemoryEstimate
from steerboard_contracts.samples import Finite, Message
from steerboard_contracts.watching.warnings import RunWarning


class EarlierRun(BaseModel):
    id: uuid.UUID
    name: str
    device_seconds: float


class RoleMemory(BaseModel):
    """What a role of an online run would need of each of the `devices` that it works on, in bytes."""

    role: str
    devices: int
    bytes: int
    parts: MemoryEstimate
    fits: bool


class PoolMemory(BaseModel):
    """What a run would need of each device of a pool's weakest worker, in bytes. `fits` is null where that worker's
    memory is not known.

    Of a run whose roles have GPUs of their own, the numbers are of those that train, `processes` of them; `roles` has
    all, where the memory is known, and `problem` why its placement has no room."""

    pool: str
    on_gpu: bool
    processes: int
    device_bytes: int | None
    bytes: int
    parts: MemoryEstimate
    fits: bool | None
    roles: list[RoleMemory] = []
    problem: str | None = None


class RunEstimate(BaseModel):
    """What the run would cost, with a 90% interval, by the earlier runs that are most like it (`based_on`). All null
    where that is unknown: of the `finished` runs of its kind there are none, or none is enough like it."""

    device_seconds_low: float | None
    device_seconds: float | None
    device_seconds_high: float | None
    based_on: list[EarlierRun]
    finished: int
    memory: list[PoolMemory] = []
    warnings: list[RunWarning] = []


class SelectionPreviewIn(BaseModel):
    """`threshold` is in z, and itself not kept."""

    model_config = ConfigDict(extra="forbid")

    data: Annotated[str, Field(min_length=1, max_length=200, description="A labelled dataset by name or id.")]
    threshold: Finite = 0.0


class LabelledExample(BaseModel):
    row: int
    prompt: list[Message]
    response: str
    source: str
    reward: float
    z: float


class SelectionPreview(BaseModel):
    """Counts rows of the train split; `share` is null where it has none. Examples: those nearest to the threshold."""

    total: int
    kept: int
    share: float | None
    threshold_raw: float
    kept_examples: list[LabelledExample]
    dropped_examples: list[LabelledExample]


class WeightsPreviewIn(BaseModel):
    """Weights exp(z / beta), at most `max_weight`; `self_normalised`: over their sum in a batch."""

    model_config = ConfigDict(extra="forbid")

    data: Annotated[str, Field(min_length=1, max_length=200, description="A labelled dataset by name or id.")]
    beta: Positive = 5.0
    max_weight: Positive | None = 20.0
    self_normalised: bool = False
    bins: Annotated[int, Field(ge=1, le=500)] = 40


class WeightsPreview(BaseModel):
    """Weights of the train split. `effective_sample_size` and `clipped` are fractions of `n`. `gradient_scale`: about
    how many times as long the gradient is as with equal weights of 1; always 1 when self-normalised."""

    n: int
    effective_sample_size: float
    largest_weight: float
    clipped: float
    gradient_scale: float
    bins: list[Bin]
