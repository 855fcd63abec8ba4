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
