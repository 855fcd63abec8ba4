"""The API's schemas of entrants, and the fields that others share with them."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from steerboard.evaluation.prompts.schemas import Reference
from steerboard.runs.state.states import RunState
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.decoding import MOST_SAMPLES, BestOf, Decoding, RequestedCondition
from steerboard_contracts.engine import EngineName

EvaluationName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


NamedDecoding = Literal["greedy", "sampled", "by_category"]


class EntrantIn(BaseModel):
    """Who answers: a model of the registry or an endpoint. Several samples are drawn unless a decoding is given.

    `by_category` samples at the temperatures that MT-Bench has for its categories.
    """

    model_config = ConfigDict(extra="forbid")

    name: EvaluationName | None = None
    model: Reference | None = None
    endpoint: Reference | None = None
    score: RequestedCondition = None
    decoding: NamedDecoding | Decoding | None = None
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES, description="Answers to each prompt.")] = 1
    best_of: BestOf = None
    reward: Annotated[
        Reference | None,
        Field(description="The reward model that chooses the best of several.", validate_default=True),
    ] = None
    family: Annotated[str | None, Field(max_length=64, pattern=r"^[^\x00]+$")] = None
    engine: Annotated[EngineName, Field(description="What computes a model's answers.")] = "transformers"

    @model_validator(mode="after")
    def _one_of_them(self) -> EntrantIn:
        if (self.model is None) == (self.endpoint is None):
            raise ValueError("give either `model` or `endpoint`")
        if self.endpoint is not None and self.engine != "transformers":
            raise ValueError("`engine` applies only to models; an endpoint runs its own")
        return self

    # A check of the fields, so that a form can show its errors there.
    @field_validator("best_of")
    @classmethod
    def _one_answer_of_a_model(cls, best_of: int | None, given: ValidationInfo) -> int | None:
        several = given.data.get("samples", 1) > 1
        if best_of is not None and (given.data.get("endpoint") is not None or several):
            raise ValueError(
                "`best_of` needs a model, and cannot be combined with an endpoint or with several `samples`"
            )
        return best_of

    @field_validator("reward")
    @classmethod
    def _both_or_neither(cls, reward: str | None, given: ValidationInfo) -> str | None:
        if "best_of" in given.data and (given.data["best_of"] is None) != (reward is None):
            raise ValueError("give both `best_of` and the `reward` model that chooses, or neither")
        return reward


class EntrantOut(BaseModel):
    """`missing`: answers that should be there and are not. `imported` records where imported answers came from."""

    id: uuid.UUID
    name: str
    source: Literal["model", "endpoint", "import"]
    model: str | None
    model_id: uuid.UUID | None
    endpoint: str | None
    method: str | None
    score: Condition | None
    decoding: dict[str, Any]
    samples: int
    family: str | None
    content_hash: str | None
    responses: int
    missing: int
    run: RunRef | None
    imported: dict[str, Any] | None


class RunRef(BaseModel):
    """The run that does the work, and why it is where it is."""

    id: uuid.UUID
    state: RunState
    reason: str
    reason_code: str | None = None
    progress: dict[str, Any] | None = None
