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
    `valid` is False when too many of both tell nothing, and `invalid_because` gives the reason. `invalid_entrants`: why
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
    alpaca_eval: list[AlpacaRow] = []
    arena_hard: list[ArenaRow] = []
    single: list[SingleRow] = []
    warnings: list[str]
