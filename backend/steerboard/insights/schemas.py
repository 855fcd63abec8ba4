"""The API's schemas of runs that no one has started yet."""

from __future__ import annotations

import uuid
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard.datasets.schemas import Bin
from steerboard_contracts.fields import Positive
from steerboard_contracts.files.model_facts import ModelFacts
from steerboard_contracts.planning.memory import MemoryEstimate
from steerboard_contracts.samples import Finite
from steerboard_contracts.turns import SampleMessage
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
    prompt: list[SampleMessage]
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


class FitRequest(BaseModel):
    """A hub name, or the facts of a folder that is not here yet."""

    model_config = ConfigDict(extra="forbid")

    source: Annotated[
        str | None, Field(max_length=4096, description="`org/name[@revision][:file.gguf]` on the hub.")
    ] = None
    facts: ModelFacts | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.source is None) == (self.facts is None):
            raise ValueError("give either source or facts")
        return self


class FitNeed(BaseModel):
    """`training` of all weights, `lora`: of adapters only, `inference`: decoding. `fits` is null where the memory of
    the worker is not known."""

    use: Literal["training", "lora", "inference"]
    bytes: int
    fits: bool | None


class WorkerFit(BaseModel):
    """`device_bytes`: memory of one of its devices, or of the machine without GPUs. `needs` is empty for a model that
    is not a plain decoder."""

    name: str
    pool: str
    on_gpu: bool
    device_bytes: int | None
    needs: list[FitNeed]


class ModelFit(BaseModel):
    """A model before its import. `files` and their `size` in bytes are what an import reads, `revision` is the commit
    and `file` the GGUF file, whose types are `quantised`; `template`: it has a chat template of its own. What its files
    do not name is null."""

    revision: str | None
    file: str | None
    gated: bool
    architecture: str | None
    parameters: int | None
    files: int
    size: int
    weights: int
    quantised: list[str]
    template: bool | None
    licence: str | None
    window: int | None
    workers: list[WorkerFit]
