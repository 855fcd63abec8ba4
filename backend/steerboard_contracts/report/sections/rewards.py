"""The rewards of a reward model, and how well it is calibrated."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from steerboard_contracts.held_out_changes import HeldOutChange
from steerboard_contracts.prompts import RewardPart
from steerboard_contracts.report.benchmark import FinishedBenchmark
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import Comparison, ScoreRow


class RewardBin(BaseModel):
    low: float
    high: float
    n: int
    mean: float | None = None


class LengthCell(BaseModel):
    """Reward-length Pearson over the samples of one prompt by one entrant; None where either is constant."""

    entrant: str
    position: int
    r: float | None
    n: int


class BestOfN(BaseModel):
    """Mean over prompts of the expected best of n drawn without replacement from the samples that there are."""

    entrant: str
    n: list[int]
    reward: list[Estimate]


class Calibration(BaseModel):
    """Held-out pairs by predicted probability sigma(chosen - rejected) of the side that the model prefers."""

    bins: list[RewardBin]
    accuracy_by_bin: list[float | None]
    expected_error: float | None


class Requested(BaseModel):
    """What an entrant was asked for, and its mean reward."""

    requested: float
    entrant: str
    achieved: Estimate


class RewardCurve(BaseModel):
    """One reward along what a model is asked for at one guidance, in the units of its comparison; `spearman` is over
    the means."""

    model: str
    attribute: str
    guidance: float = 1.0
    points: list[Requested]
    spearman: float | None


class RewardSum(BaseModel):
    """Several rewards added up as in the data that `trained` learned from: the sum of weight times (R - mean) / sd over
    `parts`, in z units of the labelled sums."""

    name: str
    parts: list[RewardPart]
    trained: list[str]
    comparison: Comparison
    curves: list[RewardCurve]


class RewardReport(BaseModel):
    """`trained`: entrants that were trained on this model's rewards, which it cannot judge independently.

    `comparison` is in `units`: z by the model's normaliser, raw where it has none. `raw`: the means as the model
    gives them. `held_out_changes`: by people, of the pairs that `accuracy` is of. `benchmarks`: the newest of this
    model on each dataset of pairs, whichever evaluation it is in.
    """

    reward_model: str
    content_hash: str
    state: str
    trained: list[str]
    comparison: Comparison
    units: Literal["z", "raw"] = "raw"
    raw: list[ScoreRow] = []
    accuracy: Estimate
    held_out_changes: list[HeldOutChange] = []
    calibration: Calibration | None
    histogram_raw: dict[str, list[RewardBin]]
    histogram_z: dict[str, list[RewardBin]]
    length_correlation: list[LengthCell]
    best_of_n: list[BestOfN]
    warnings: list[str]
    benchmarks: list[FinishedBenchmark] = []
    curves: list[RewardCurve] = []
