"""The API's schemas of evaluations."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard.evaluation.entrants.schemas import EntrantIn, EntrantOut, EvaluationName, RunRef
from steerboard.evaluation.judges.schemas import JudgeOut
from steerboard.evaluation.prompts.schemas import PromptsFrom, Reference
from steerboard.evaluation.ranking.campaigns.schemas import CampaignOut
from steerboard.runs.state.states import RunState
from steerboard_contracts.engine import EngineName

EvaluationState = Literal["answering", "answered", "failed"]
Words = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")]


class EvaluationCreate(BaseModel):
    """`check_against`: datasets in which the prompts are looked for; null: all that the entrants were trained on."""

    model_config = ConfigDict(extra="forbid")

    name: EvaluationName
    description: Words = ""
    prompts: PromptsFrom
    entrants: Annotated[list[EntrantIn], Field(max_length=64)] = []
    rewards: Annotated[list[Reference], Field(max_length=16, description="Reward models.")] = []
    kl_to: Annotated[
        Reference | None,
        Field(
            description="A model, such as the one that entrants were trained from: the perplexity of all answers is "
            "measured under it, and the KL to it estimated from sampled ones."
        ),
    ] = None
    check_against: Annotated[list[Reference] | None, Field(max_length=100)] = None
    seed: Annotated[int, Field(ge=0, lt=2**31, description="Seed of the answers that are sampled.")] = 0
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


class RewardAssessmentOut(BaseModel):
    """`values` of `responses` have been scored. `normalised_by` is what z units refer to, null without them."""

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
    turns: int = Field(description="Turns of the longest prompt.")
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
    kl_to: str | None = Field(None, description="The model that answers are compared with.")


class ResponseOut(BaseModel):
    """`rewards`: raw, by the name of the assessment. `cut`: it is so long that its turns end early here."""

    entrant: str
    sample: int
    turns: list[str]
    tokens: list[int] | None
    finished: list[bool] | None
    rewards: dict[str, float]
    cut: bool = False


class SeenOut(BaseModel):
    """A place of a prompt in training data; `overlap` is the share of its word n-grams that is found there."""

    match: Literal["exact", "near"]
    dataset: str
    row: int
    overlap: float


class PromptOut(BaseModel):
    """`cut`: it is so long that its texts end early here."""

    position: int
    question_id: str
    category: str | None
    messages: list[dict[str, str]]
    follow_ups: list[str]
    reference: list[str] | None
    seen: SeenOut | None
    responses: list[ResponseOut]
    cut: bool = False


class PromptPage(BaseModel):
    """`next` is the `after` of the page that follows, null on the last."""

    items: list[PromptOut]
    next: int | None = None
