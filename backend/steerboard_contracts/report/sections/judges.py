"""The verdicts of a judge, and how far they can be trusted."""

from __future__ import annotations

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
    """AlpacaEval figures in percent. `length_controlled`: None where its regression cannot be fitted."""

    entrant: str
    win_rate: float
    standard_error: float | None
    discrete_win_rate: float
    n_wins: int
    n_losses: int
    n_ties: int
    n: int
    length_controlled: float | None
    average_length: float | None


class ArenaRow(BaseModel):
    """Arena-Hard: win rate against the baseline in percent, with the percentile interval of 100 bootstraps."""

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
    """`verdicts` counts all, superseded ones apart. `valid` is False when too many of them tell nothing. `trained`:
    entrants that learned from this preference model, or had answers chosen by it."""

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
    unparsed_rate: float
    unparsed_threshold: float
    valid: bool
    trained: list[str] = []
    prompt_tokens: int | None
    completion_tokens: int | None
    comparison: Comparison
    biases: JudgeBiases
    alpaca_eval: list[AlpacaRow] = []
    arena_hard: list[ArenaRow] = []
    single: list[SingleRow] = []
    warnings: list[str]
