"""The API's schemas of judges and their verdicts."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard.runs.state.states import RunState
from steerboard_contracts.fields import RequestsPerMinute

JudgeStyle = Literal["multi", "single", "pairwise", "alpaca_eval", "arena_hard", "preference", "rubric"]
VerdictStatus = Literal["ok", "unparsed", "refused", "error"]
MOST_CRITERIA = 30
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Ref = Annotated[str, Field(min_length=1, max_length=200)]
Price = Annotated[
    float, Field(ge=0, le=1_000_000, allow_inf_nan=False, description="Price of a million tokens, in any one currency.")
]
Budget = Annotated[
    float,
    Field(
        gt=0,
        le=1_000_000_000,
        allow_inf_nan=False,
        description="In the currency of the prices, for the judge and its calibrations. No request is made that could "
        "exceed it.",
    ),
]


class RubricCriterion(BaseModel):
    """A question of a rubric that is answered with yes, which is good, or no."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\n\r]*\S[^\n\r]*$")]
    weight: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 1.0


class JudgeSettings(BaseModel):
    """How a judge is called. Times are in seconds."""

    model_config = ConfigDict(extra="forbid")

    both_orders: Annotated[
        bool, Field(description="Pairwise and Arena-Hard: ask in both orders; different verdicts make a tie.")
    ] = True
    blind: Annotated[
        bool,
        Field(
            description="Multi: no names, and an order drawn for each prompt. Off: the paper's fixed order and names."
        ),
    ] = True
    entrants: Annotated[list[Ref] | None, Field(min_length=1, description="By name; all by default.")] = None
    baseline: Annotated[
        Ref | None,
        Field(description="The entrant that the others are compared with. AlpacaEval and Arena-Hard need one."),
    ] = None
    temperature: Annotated[float | None, Field(ge=0, le=2, allow_inf_nan=False, description="0 by default.")] = None
    max_tokens: Annotated[int, Field(ge=1, le=100_000, description="Tokens of the judge's answer.")] = 2048
    requests_per_minute: RequestsPerMinute | None = None
    concurrency: Annotated[int, Field(ge=1, le=64, description="Requests in flight at the same time.")] = 4
    reference: Annotated[
        bool, Field(description="Show the reference answer of math, reasoning and coding prompts that have one.")
    ] = True
    unparsed_threshold: Annotated[
        float, Field(ge=0, le=1, description="A larger share of unusable verdicts makes the judge invalid.")
    ] = 0.05
    criteria: Annotated[str | None, Field(max_length=4000, description="What to weigh, in the judge's prompt.")] = None
    rubric: Annotated[
        list[RubricCriterion] | None,
        Field(
            min_length=1,
            max_length=MOST_CRITERIA,
            description="Rubric: what an answer has to meet, as yes or no questions with weights.",
        ),
    ] = None
    seed: Annotated[int, Field(ge=0, lt=2**63, description="Seed of the orders that are drawn.")] = 0
    repeat_share: Annotated[
        float,
        Field(ge=0, le=1, description="Share of the requests that is sent a second time, to measure repeatability."),
    ] = 0.0
    calibration_threshold: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Valid only where the interval of its accuracy begins here or above on each calibration set.",
        ),
    ] = None
    prompt_price: Price | None = None
    completion_price: Price | None = None
    budget: Budget | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=3600, description="For one request, all of it.")] = 120.0
    attempts: Annotated[int, Field(ge=1, le=20, description="How often one request is tried.")] = 6


class JudgeIn(BaseModel):
    """Who judges: the model of `endpoint`, by name or id; or, with the style `preference`, the registry's preference
    model `model`. `family` is compared with the entrants' for self-preference."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    style: JudgeStyle
    endpoint: Ref | None = None
    model: Annotated[Ref | None, Field(description="A preference model of the registry, by name or id.")] = None
    family: Annotated[str | None, Field(max_length=100)] = None
    settings: JudgeSettings = JudgeSettings()
    pool: Annotated[str | None, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")] = None


class JudgeChange(BaseModel):
    """What may change while a judge is at work or after it has stopped: its budget, None for none."""

    model_config = ConfigDict(extra="forbid")

    budget: Budget | None


class JudgeEstimate(BaseModel):
    """What a judge would cost: `requests` in all, of which `cached` are answered already. A preference model is called
    about each pair in both orders. `most_cost`: an upper bound of the price of the others, where prices are given: a
    token for each byte that is sent, and answers of the greatest length."""

    requests: int
    cached: int
    most_cost: float | None = None


class JudgeRun(BaseModel):
    id: uuid.UUID
    state: RunState
    reason: str


class JudgeOut(BaseModel):
    """`verdicts` counts those that are not superseded. `requests`: answers paid for; `cached`: those that were known.

    `failures`: requests that failed and were tried again, or given up, by code. `valid` is False when too many
    verdicts are unusable or the calibration that it needs first is missing or failed, and `invalid_because` gives the
    reason; `prompt_tokens` and `completion_tokens` are null where the endpoint does not count them.
    """

    id: uuid.UUID
    name: str
    style: JudgeStyle
    model: str
    family: str | None
    endpoint: str | None
    model_id: Annotated[uuid.UUID | None, Field(description="Id of a preference model of the registry.")] = None
    settings: dict[str, Any]
    imported: dict[str, Any] | None
    state: RunState
    run: JudgeRun | None
    verdicts: int
    ok: int
    unparsed: int
    refused: int
    errors: int
    superseded: int
    unparsed_rate: float | None
    valid: bool
    invalid_because: str | None = None
    prompt_tokens: int | None
    completion_tokens: int | None
    requests: int
    cached: int
    cost: Annotated[float | None, Field(description="So far, by the judge's prices; null without them.")] = None
    uncertain_cost: Annotated[
        float,
        Field(
            description="Part of `cost`: an upper bound for requests under way, or whose answer or token count "
            "never arrived."
        ),
    ] = 0.0
    calibration_cost: Annotated[
        float | None,
        Field(description="Cost of the judge's calibrations, which spend its budget too; null without prices."),
    ] = None
    failures: dict[str, int]
    created_by: str
    created_at: dt.datetime


class Judges(BaseModel):
    """All judges of an evaluation, by age."""

    items: list[JudgeOut]


class VerdictOut(BaseModel):
    """`a`, `b`: names of entrants. `raw`: what the judge wrote; `detail`: why there is no value.

    `cut`: `raw` is so long that it ends early here; the export of the judge's verdicts has all of it."""

    id: int
    position: int
    turn: int
    a: str
    b: str | None
    a_first: bool | None
    value: float | None
    weight: int
    status: VerdictStatus
    raw: str | None
    detail: str | None
    superseded: bool
    created_at: dt.datetime
    cut: bool = False
