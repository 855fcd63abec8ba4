"""What a recipe's stage adds to the report of its evaluation: the claims of the paper, and what they rest on."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from steerboard_contracts.known_quality import KnownQuality
from steerboard_contracts.report.decision import RoundDecision


class RewardModelSummary(BaseModel):
    """The reward model that rewards are by, and one from whose scores nothing in the evaluation learned, if there is
    one."""

    name: str | None = None
    held_out_accuracy: float | None
    pairs: int
    independent_name: str | None = None
    independent_held_out_accuracy: float | None = None
    independent_pairs: int | None = None


class Control(BaseModel):
    """Achieved mean reward at each requested score; Spearman is over these means."""

    requested: list[float]
    achieved: list[float]
    spearman: float | None


class LabelledRewards(BaseModel):
    """Percentiles of the labelled data's rewards."""

    p20: float
    p50: float
    p80: float
    n: int


class Example(BaseModel):
    """One prompt with the answer of every entrant and score."""

    prompt: str
    answers: list[dict[str, Any]]


class ReportCheck(BaseModel):
    """One claim of the paper about conditional training, or about what is known of the truth, with the figures of this
    report."""

    text: str
    met: bool


class RecipeSection(BaseModel):
    """Kept when the stage ended. `entrants`: the recipe's, in its order; people may have entered others.
    `units`: z, by `units_of`, or raw where nothing defines a usual reward."""

    entrants: list[str]
    reward_model: RewardModelSummary
    control: Control | None = None
    labelled_rewards: LabelledRewards | None = None
    units: Literal["z", "raw"] = "z"
    units_of: str | None = "the labelled data"
    quality: KnownQuality | None = None
    checks: list[ReportCheck] = []
    examples: list[Example] = []
    warnings: list[str] = []
    training: list[str] = []
    """A line each: which weights a policy's training kept, and what the policy gains by its condition."""
    judge: str | None = None
    """Who compared the answers in addition to the reward models: an LLM at an endpoint, or a preference model."""
    decision: RoundDecision | None = None
    """The decision after the evaluation of a round, where a rule may stop the rounds."""

    @property
    def synthetic(self) -> bool:
        """Whether a script wrote the texts: then the figures say nothing about real models."""
        return self.quality == "synthetic"
