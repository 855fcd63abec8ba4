"""What a select run finds: which groups it kept, what the best answers are like, and the best-of-k curve."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, model_validator

from steerboard_contracts.report.correlations import Correlations
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.rewards import RewardBin
from steerboard_contracts.report.tournament import Tournament
from steerboard_contracts.run_kinds.select import Keep


class DroppedGroups(BaseModel):
    """Groups of which nothing was kept. `single`: one answer only, since the others were empty; `equal_texts`: the best
    and the worst answer are the same text; `tied`: their scores differ by no more than `min_margin`."""

    single: int = 0
    equal_texts: int = 0
    tied: int = 0

    @property
    def total(self) -> int:
        return self.single + self.equal_texts + self.tied


class SelectedReward(BaseModel):
    """One of the rewards, raw. `mean`: of all answers of a group; `best`: of the answer with the best score."""

    dataset: str
    source: str
    weight: float
    mean: Estimate
    best: Estimate


class BestOfK(BaseModel):
    """Expected best of k answers, the mean over prompts. `rewards`: raw, in the order of the rewards; `kl`: in nats, an
    upper bound of the divergence from the model that answered."""

    k: int
    kl: float
    score: Estimate
    rewards: list[float]
    characters: float


class SelectionResult(BaseModel):
    """Figures are means over groups of at least two answers, dropped ones included. Scores are what answers were
    selected by; `scale` is their unit, "probability" where a preference model judged.

    `curve` is over `curve_groups`, those with as many answers as its last k. `unique_texts`: share of a group.
    `length_gap`: characters of the best answer less the mean of its group. `correlations`: between the rewards,
    over all answers; null for a single reward. `margins`: best score less worst.
    """

    keep: Keep
    scale: str
    penalty: float
    groups: int
    answers: int
    kept_groups: int
    rows: int
    dropped: DroppedGroups
    mean: Estimate
    best: Estimate
    unique_texts: Estimate
    length_gap: Estimate
    rewards: list[SelectedReward]
    correlations: Correlations | None = None
    tournament: Tournament | None = None
    margins: list[RewardBin] = []
    curve: list[BestOfK]
    curve_groups: int

    @model_validator(mode="before")
    @classmethod
    def _of_former_releases(cls, value: Any) -> Any:
        """They kept Pearson's r alone."""
        if not isinstance(value, dict) or not isinstance(value.get("correlations"), list):
            return value
        r, names = value["correlations"], [reward["source"] for reward in value["rewards"]]
        kept = {"names": names, "n": value["answers"] - value["dropped"].get("single", 0), "pearson": r}
        return {**value, "correlations": {**kept, "spearman": [[None] * len(r) for _ in r]} if r else None}
