"""The report of an evaluation, as one JSON document. Rewards are z units of the labelled data."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class MethodRow(BaseModel):
    """One entrant at one requested score. `reward_low`/`reward_high`: bootstrap 95% interval over prompts."""

    method: str
    entrant: str
    score: float | None
    n: int
    reward_mean: float
    reward_low: float
    reward_high: float
    independent_reward_mean: float | None = None
    length_mean: float
    truncated: float
    distinct_1: float
    distinct_2: float
    win_rate_vs_sft: float | None
    independent_win_rate_vs_sft: float | None
    quality_mean: float | None = None
    quality_low: float | None = None
    quality_high: float | None = None
    device_seconds: float


class RewardModelSummary(BaseModel):
    held_out_accuracy: float | None
    pairs: int
    independent_held_out_accuracy: float | None = None
    independent_pairs: int | None = None


class Control(BaseModel):
    """Achieved mean reward at each requested score; Spearman is over these means."""

    requested: list[float]
    achieved: list[float]
    spearman: float | None


class LabelledRewards(BaseModel):
    p20: float
    p50: float
    p80: float
    n: int


class StageRow(BaseModel):
    name: str
    status: str
    seconds: float
    device_seconds: float
    reused: bool = False


class Example(BaseModel):
    """One prompt with the answer of every entrant and score."""

    prompt: str
    answers: list[dict[str, Any]]


class Report(BaseModel):
    stages: list[StageRow] = []
    methods: list[MethodRow]
    reward_model: RewardModelSummary
    control: Control | None
    labelled_rewards: LabelledRewards | None
    prompts: int
    synthetic: bool = False
    examples: list[Example] = []
    warnings: list[str] = []
