"""What a job is asked for, and what is kept of that until it has a run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from steerboard.openai_api.jobs.graders import Rewards
from steerboard.runs.schemas.requests import PoolName

# What OpenAI's API takes where no method is named.
DEFAULT_TYPE = "supervised"
Key = Annotated[str, Field(max_length=64)]


class RunOptions(BaseModel):
    """Ours, for what OpenAI's fields cannot say. `config`: fields of the method's config, which win."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any] = {}
    pool: PoolName = "default"
    priority: Annotated[int, Field(ge=-100, le=100)] = 0


class JobIn(BaseModel):
    """Fields that nothing here reads are refused by name, see `service.create`."""

    model_config = ConfigDict(extra="allow")

    model: Annotated[str, Field(min_length=1, max_length=200)]
    training_file: Annotated[str, Field(max_length=200)]
    validation_file: str | None = None
    method: dict[str, Any] | None = None
    hyperparameters: dict[str, Any] | None = None
    suffix: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    metadata: Annotated[dict[Key, Annotated[str, Field(max_length=512)]], Field(max_length=16)] | None = None
    steerboard: RunOptions = RunOptions()


class JobPlan(BaseModel):
    """`type` and `method`: OpenAI's name of the method and ours. Models are ids; `rewards` has theirs, too. `grader` is
    as it was given."""

    type: str
    method: str
    model_id: str
    suffix: str | None
    hyperparameters: dict[str, Any]
    grader: dict[str, Any] | None = None
    rewards: Rewards | None = None
    options: RunOptions
