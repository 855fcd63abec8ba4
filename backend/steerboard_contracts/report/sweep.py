"""What a sweep found: the variants with their held-out figures, the best, and those that may be as good."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from steerboard_contracts.recipes.sweep import SweepGoal, SweepSearch
from steerboard_contracts.report.estimate import Estimate


class RungRow(BaseModel):
    """A variant's training for `steps`, by the figure of the halving with its 95% interval; null where it has none."""

    rung: int
    steps: int
    stage: str
    figure: float | None
    low: float | None = None
    high: float | None = None


class VariantRow(BaseModel):
    """`stage`: whose figure it is; `stages`: all that are not the same in every variant. `behind`: how far the best is
    ahead, as the mean of the differences by prompt, and `p_holm` of Wilcoxon's test on them with Holm over all pairs of
    variants. `within_noise` of the best: null for the best itself, and where nothing decides. `device_seconds`: of
    `stages`, each counted for every variant that uses it. Of successive halving, `rungs` are those that it was trained
    in, and `dropped_after` the last of them where others continued instead, for the `reason`; `dropped_within_noise`
    of the best of that rung, whose interval overlaps with its own, or null where figures have none."""

    number: int
    values: dict[str, Any]
    stage: str
    stages: list[str]
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "skipped", "paused"]
    figure: Estimate | None = None
    behind: Estimate | None = None
    p_holm: float | None = None
    within_noise: bool | None = None
    device_seconds: float = 0.0
    rungs: list[RungRow] = []
    dropped_after: int | None = None
    reason: str | None = None
    dropped_within_noise: bool | None = None


class SweepReport(BaseModel):
    """`figure` in words. `units` of a mean reward. `compared_by`: differences on the same `prompts`, or, of accuracies
    that training measured, intervals that overlap; null where figures have neither. `best` and `within_noise` are
    numbers of variants. `halving`: how variants are dropped, in words, and `halving_figure` by which. `verdict`: the
    finding in a sentence."""

    pipeline: str
    search: SweepSearch
    seed: int | None
    fields: list[str]
    metric: str
    goal: SweepGoal
    figure: str
    units: Literal["z", "raw"] | None = None
    prompts: int | None = None
    compared_by: Literal["prompts", "intervals"] | None = None
    variants: list[VariantRow]
    best: int | None = None
    within_noise: list[int] = []
    halving: str | None = None
    halving_figure: str | None = None
    verdict: str
    notes: list[str] = []
