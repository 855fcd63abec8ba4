"""What a combine run finds: how each reward was normalised and weighted, and how they go together."""

from __future__ import annotations

from pydantic import BaseModel

from steerboard_contracts.prompts import RewardPart
from steerboard_contracts.report.correlations import Correlations
from steerboard_contracts.report.sections.rewards import RewardBin


class CombinedReward(RewardPart):
    """One of the rewards. `histogram`: of its z-scores, before they are weighted. `share`: of the variance of the
    sum, weight x cov(z, sum) / var(sum); the shares add up to 1, and one is negative where the others outweigh it."""

    dataset: str
    share: float
    histogram: list[RewardBin]


class CombinationResult(BaseModel):
    """`mean`, `sd` and `histogram` are of the sums, in their own units. The last row of `correlations` is the sum's."""

    rows: int
    mean: float
    sd: float
    rewards: list[CombinedReward]
    correlations: Correlations
    histogram: list[RewardBin]
