"""Who is compared in an evaluation, on which prompts."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.report.estimate import Estimate


class EntrantRow(BaseModel):
    """One entrant. Lengths in characters of all turns; `truncated`: share of answers that the token limit ended.

    `condition_gain`: nats an answer that its policy gained by the true condition over another row's, on held-out rows
    after step `condition_gain_step` of its training; null where that was not measured. `kept`: which evaluation of its
    training its weights are of, where it kept the best. `trained_on`: content hashes of the reward models
    upstream of it, and of the one that chose its answers; `origin_known`: whether those are all of them. `chosen_by`:
    the name of the latter. `samples`: answers to each prompt.
    """

    name: str
    source: Literal["model", "endpoint", "import"]
    method: str | None
    score: Condition | None
    guidance: float = 1.0
    samples: int = 1
    best_of: int | None = None
    chosen_by: str | None = None
    family: str | None
    model: str | None
    content_hash: str | None
    responses: int
    missing: int
    length: Estimate
    truncated: float | None
    condition_gain: Estimate | None = None
    condition_gain_step: int | None = None
    kept: str | None = None
    trained_on: list[str] = []
    origin_known: bool = False


class LengthRatio(BaseModel):
    """Characters of `a`'s answers over those of `b`'s, of the prompts that both answered."""

    a: str
    b: str
    ratio: Estimate


class SeenPrompt(BaseModel):
    position: int
    question_id: str
    match: Literal["exact", "near"]
    dataset: str
    row: int
    overlap: float


class Contamination(BaseModel):
    checked: list[str]
    prompts: int
    exact: int
    near: int
    seen: list[SeenPrompt]
