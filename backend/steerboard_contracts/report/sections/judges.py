"""The verdicts of a judge, and how far they can be trusted."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import Comparison


class SelfPreference(BaseModel):
    """How often a judge prefers answers of its own family, compared with the other sources on the same items.

    `others`: by source, on the same items; a preference above theirs is the judge's own.
    """

    family: str
    own: Estimate
    others: dict[str, Estimate] = {}


class JudgeBiases(BaseModel):
    """`expected_first_wins`: what an unbiased judge gives: 1/2 for pairs, 1/N for N answers at once."""

    first_wins: Estimate
    longer_wins: Estimate
    flip_rate: Estimate
    self_preference: SelfPreference | None
    expected_first_wins: float | None = None


class SourceKappa(BaseModel):
    """Agreement with another source on the entrant pairs of the items that both cover: Cohen's kappa, in which a tie is
    a label, and the plain share, in which a tie of one side counts 1/2."""

    source: str
    kappa: Estimate
    agreement: Estimate


class Calibration(BaseModel):
    """A judge on pairs whose better side is known. `accuracy`: share in which it prefers that side, a tie counting 1/2;
    its n counts those with a usable verdict, of `pairs`."""

    dataset: str
    evaluation: str
    pairs: int
    accuracy: Estimate


class JudgeQuality(BaseModel):
    """How reliable a judge is. `people`: by campaign and criterion. `repeatability`: share of questions asked
    twice that got the same verdict. `cost` by the judge's prices, an upper bound where `uncertain_cost` is part of it;
    `cost_per_verdict` and `seconds_per_verdict` over the verdicts that this judge paid for. `calibration_cost`: in
    addition to `cost`, of its calibrations, which spend the same budget."""

    people: list[SourceKappa] = []
    calibrations: list[Calibration] = []
    repeatability: Estimate
    cost: float | None = None
    uncertain_cost: float = 0.0
    calibration_cost: float | None = None
    cost_per_verdict: float | None = None
    seconds_per_verdict: float | None = None


class JuryReport(BaseModel):
    """Several judges as one source. `judges` are those that it counts; `left_out`: why others of it are not counted.
    `trained`: entrants that learned from one of those that it counts, or had answers chosen by it. `alpha`:
    Krippendorff's, nominal, of the jurors' verdicts on entrant pairs; its interval is over items."""

    jury: str
    rule: Literal["majority", "mean"]
    judges: list[str]
    left_out: dict[str, str] = {}
    valid: bool
    trained: list[str] = []
    comparison: Comparison
    alpha: Estimate
    people: list[SourceKappa] = []
    warnings: list[str] = []


class AlpacaRow(BaseModel):
    """AlpacaEval figures in percent. `length_controlled`: None where its regression cannot be fitted. It is the variant
    `minimal`: without the difficulties of the benchmark's prompts and its gamed baselines, so not the published one."""

    entrant: str
    win_rate: float
    standard_error: float | None
    discrete_win_rate: float
    n_wins: int
    n_losses: int
    n_ties: int
    n: int
    length_controlled: float | None
    length_control: Literal["minimal"] = "minimal"
    average_length: float | None


class ArenaRow(BaseModel):
    """Arena-Hard: win rate against the baseline in percent, with the percentile interval of 1,000 bootstraps."""

    entrant: str
    win_rate: float
    low: float | None
    high: float | None
    n: int


class SingleRow(BaseModel):
    """FastChat's single-answer grading: means by turn and category."""

    entrant: str
    turn_1: float | None
    turn_2: float | None
    average: float | None
    n: int
    by_category: dict[str, float]


class JudgeReport(BaseModel):
    """`verdicts` counts all, superseded ones apart; `unreadable`: rows of an imported file that could not be read.
    `valid` is False when too many of both are unusable, and `invalid_because` gives the reason. `invalid_entrants`: why
    an entrant has no figures, of an invalid judge every one that it judged. `trained`: entrants that learned from this
    preference model, or had answers chosen by it."""

    judge: str
    style: str
    model: str
    imported: bool
    state: str
    verdicts: int
    ok: int
    unparsed: int
    refused: int
    errors: int
    superseded: int
    unreadable: int = 0
    unparsed_rate: float
    unparsed_threshold: float
    valid: bool
    invalid_because: str | None = None
    invalid_entrants: dict[str, str] = {}
    trained: list[str] = []
    prompt_tokens: int | None
    completion_tokens: int | None
    comparison: Comparison
    biases: JudgeBiases
    quality: JudgeQuality | None = None
    alpaca_eval: list[AlpacaRow] = []
    arena_hard: list[ArenaRow] = []
    single: list[SingleRow] = []
    warnings: list[str]
