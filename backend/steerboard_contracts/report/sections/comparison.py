"""The scores and comparisons that one source of an evaluation gives the entrants."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from steerboard_contracts.report.estimate import Estimate

By = Literal["human", "judge", "jury", "reward"]


class ScoreRow(BaseModel):
    """An entrant's mean: rank score N + 1 - r for people, 1 to 10 for judges, z or raw reward for reward models."""

    entrant: str
    mean: Estimate


class PairRow(BaseModel):
    """`a` against `b` on the same items. `win_rate` = (wins + ties/2) / n; `difference` of the mean scores a - b.
    `length_matched`: the win rate over the items on which neither answer has more than 1.5 times the characters of the
    other; `length_adjusted`: what a regression on the lengths of all items gives for equally long answers.

    `p` and `p_holm`: Wilcoxon signed-rank over items, Holm over all pairs of the table. `significant`: `p_holm` below
    0.05, and the ranks favour the same entrant as the mean.
    """

    a: str
    b: str
    wins: float
    ties: float
    losses: float
    win_rate: Estimate
    difference: Estimate | None = None
    p: float | None = None
    p_holm: float | None = None
    significant: bool = False
    length_matched: Estimate | None = None
    length_adjusted: Estimate | None = None


class Friedman(BaseModel):
    statistic: float
    p: float
    entrants: int
    items: int


class Strength(BaseModel):
    """Bradley-Terry, scaled so that the strengths have a geometric mean of 1."""

    entrant: str
    strength: Estimate


class Comparison(BaseModel):
    """One source's view (people of a campaign, a judge, a reward model) of the entrants.

    `winner` is significant after Holm against every rival, else None; `why` explains it in a sentence.
    """

    scores: list[ScoreRow]
    pairs: list[PairRow]
    friedman: Friedman | None
    bradley_terry: list[Strength]
    items: int
    winner: str | None
    why: str


def pair_of(comparison: Comparison, entrant: str, vs: str) -> PairRow | None:
    """The row of two entrants, turned so that `entrant` is `a`."""
    for row in comparison.pairs:
        if (row.a, row.b) == (entrant, vs):
            return row
        if (row.b, row.a) == (entrant, vs):
            return turned(row)
    return None


def turned(row: PairRow) -> PairRow:
    return row.model_copy(
        update={
            "a": row.b,
            "b": row.a,
            "wins": row.losses,
            "losses": row.wins,
            "win_rate": mirrored(row.win_rate, 1.0),
            "difference": None if row.difference is None else mirrored(row.difference, 0.0),
            "length_matched": None if row.length_matched is None else mirrored(row.length_matched, 1.0),
            "length_adjusted": None if row.length_adjusted is None else mirrored(row.length_adjusted, 1.0),
        }
    )


def mirrored(estimate: Estimate, around: float) -> Estimate:
    """`around` - x."""

    def turn(value: float | None) -> float | None:
        return None if value is None else around - value

    return Estimate(value=turn(estimate.value), low=turn(estimate.high), high=turn(estimate.low), n=estimate.n)


def score_of(comparison: Comparison, entrant: str) -> Estimate | None:
    return next((row.mean for row in comparison.scores if row.entrant == entrant), None)
