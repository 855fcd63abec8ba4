"""What the API says of evaluations, and what it takes."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard.evaluation.judging.schemas import JudgeOut
from steerboard.evaluation.ranking.campaigns_schemas import CampaignOut
from steerboard.runs.states import RunState
from steerboard_contracts.configs import MOST_SAMPLES, Decoding, EngineName
from steerboard_contracts.samples import Finite

EvaluationState = Literal["answering", "answered", "failed"]
EvaluationName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Words = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")]
Reference = Annotated[str, Field(min_length=1, max_length=200, description="A name or an id.")]
NamedDecoding = Literal["greedy", "sampled", "by_category"]


class PromptsFrom(BaseModel):
    """A prompt set, or rows of a dataset. `limit` prompts are drawn by `seed`."""

    model_config = ConfigDict(extra="forbid")

    set: Reference | None = None
    dataset: Reference | None = None
    split: Literal["all", "train", "held_out"] = "all"
    limit: Annotated[int | None, Field(ge=1, le=20_000)] = None
    seed: int = 0

    @model_validator(mode="after")
    def _one_of_them(self) -> PromptsFrom:
        if (self.set is None) == (self.dataset is None):
            raise ValueError("give either `set` or `dataset`")
        return self


class EntrantIn(BaseModel):
    """Who answers: a model of the registry or an endpoint. Several samples are drawn unless a decoding says otherwise.

    `by_category` samples at the temperatures that MT-Bench has for its categories.
    """

    model_config = ConfigDict(extra="forbid")

    name: EvaluationName | None = None
    model: Reference | None = None
    endpoint: Reference | None = None
    score: Annotated[Finite | None, Field(description="Requested score, for a decision-transformer policy.")] = None
    decoding: NamedDecoding | Decoding | None = None
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES, description="Answers to each prompt.")] = 1
    family: Annotated[str | None, Field(max_length=64, pattern=r"^[^\x00]+$")] = None
    engine: Annotated[EngineName, Field(description="What computes a model's answers.")] = "transformers"

    @model_validator(mode="after")
    def _one_of_them(self) -> EntrantIn:
        if (self.model is None) == (self.endpoint is None):
            raise ValueError("give either `model` or `endpoint`")
        if self.endpoint is not None and self.engine != "transformers":
            raise ValueError("`engine` is of models: an endpoint computes by itself")
        return self


class EvaluationCreate(BaseModel):
    """`check_against`: datasets in which the prompts are looked for; null: all that the entrants were trained on."""

    model_config = ConfigDict(extra="forbid")

    name: EvaluationName
    description: Words = ""
    prompts: PromptsFrom
    entrants: Annotated[list[EntrantIn], Field(max_length=64)] = []
    rewards: Annotated[list[Reference], Field(max_length=16, description="Reward models.")] = []
    check_against: Annotated[list[Reference] | None, Field(max_length=100)] = None
    seed: Annotated[int, Field(ge=0, lt=2**31, description="Of the answers that are sampled.")] = 0
    pool: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")] = "default"


class EvaluationChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: EvaluationName | None = None
    description: Words | None = None


class RewardsIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: Reference
    engine: Annotated[
        EngineName | None, Field(description="What computes; by default what did before, or transformers.")
    ] = None


class RunRef(BaseModel):
    """The run that does the work, and why it is where it is."""

    id: uuid.UUID
    state: RunState
    reason: str
    reason_code: str | None = None
    progress: dict[str, Any] | None = None


class EntrantOut(BaseModel):
    """`missing`: answers that should be there and are not. `imported` says where imported answers came from."""

    id: uuid.UUID
    name: str
    source: Literal["model", "endpoint", "import"]
    model: str | None
    model_id: uuid.UUID | None
    endpoint: str | None
    method: str | None
    score: float | None
    decoding: dict[str, Any]
    samples: int
    family: str | None
    content_hash: str | None
    responses: int
    missing: int
    run: RunRef | None
    imported: dict[str, Any] | None


class RewardAssessmentOut(BaseModel):
    """`values` of `responses` have been scored. `normalised_by` says what z units are of, null where there are none."""

    id: uuid.UUID
    name: str
    model_id: uuid.UUID | None
    state: RunState
    run: RunRef | None
    values: int
    responses: int
    pairs: int
    accuracy: float | None
    normalised_by: str | None


class CheckedDataset(BaseModel):
    id: uuid.UUID
    name: str
    rows: int


class ContaminationOut(BaseModel):
    """`waiting`: the prompts are still being looked for."""

    checked: list[CheckedDataset]
    exact: int
    near: int
    waiting: bool


class EvaluationOut(BaseModel):
    id: uuid.UUID
    name: str
    description: str
    created_by: str
    created_at: dt.datetime
    version: int
    prompts: int
    turns: int = Field(description="Of the longest prompt.")
    entrants: list[str]
    state: EvaluationState
    judges: int
    campaigns: int


class EvaluationDetail(BaseModel):
    """An evaluation with all its parts. `unfinished`: what is still under way or has failed, in words."""

    id: uuid.UUID
    name: str
    description: str
    created_by: str
    created_at: dt.datetime
    version: int
    seed: int
    pool: str
    prompts: int
    turns: int
    categories: list[str]
    state: EvaluationState
    prompts_from: dict[str, Any]
    entrants: list[EntrantOut]
    reward_assessments: list[RewardAssessmentOut]
    judges: list[JudgeOut]
    campaigns: list[CampaignOut]
    contamination: ContaminationOut
    unfinished: list[str]


class ResponseOut(BaseModel):
    """`rewards`: raw, by the name of the assessment."""

    entrant: str
    sample: int
    turns: list[str]
    tokens: list[int] | None
    finished: list[bool] | None
    rewards: dict[str, float]


class SeenOut(BaseModel):
    """Where a prompt occurs in training data; `overlap` is the share of its word n-grams that is found there."""

    match: Literal["exact", "near"]
    dataset: str
    row: int
    overlap: float


class PromptOut(BaseModel):
    position: int
    question_id: str
    category: str | None
    messages: list[dict[str, str]]
    follow_ups: list[str]
    reference: list[str] | None
    seen: SeenOut | None
    responses: list[ResponseOut]


class PromptPage(BaseModel):
    """`next` is the `after` of the page that follows, null on the last."""

    items: list[PromptOut]
    next: int | None = None
