"""A source: people of a campaign, a judge or a reward model, and its scores of each prompt's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steerboard.evaluation.report.data import Answers, Bools, EvaluationData, Floats, Ints
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import By, Comparison, ScoreRow
from steerboard_statistics.agreement import pair_signs
from steerboard_statistics.bootstrap import ratio_interval
from steerboard_statistics.proportions import win_rate_interval


@dataclass(frozen=True)
class Source:
    """`scores` (prompts, entrants): higher is better, NaN where it has none. `signs` (prompts, pairs): who of two
    is better, pairs as in `pair_columns`. `label` names it in the report; `valid`: whether its figures may be used.
    `flips` (prompts, pairs), of a judge of pairs: 1 where its two orders differ, 0 where not, NaN where not both have a
    verdict."""

    by: By
    label: str
    scores: Floats
    signs: Floats
    comparison: Comparison
    valid: bool = True
    flips: Floats | None = None

    def columns(self) -> Ints:
        """The entrants that it covers."""
        return np.flatnonzero(np.isfinite(self.scores).any(axis=0))


def pair_columns(entrants: int) -> tuple[Ints, Ints]:
    """First and second column of every pair, first < second."""
    first, second = np.triu_indices(entrants, 1)
    return first, second


def signs_of(scores: Floats) -> Floats:
    """(items, entrants) -> (items, pairs): 1 where the first is better, 0 a tie, -1, NaN where one is missing."""
    return pair_signs(scores) if scores.size else np.empty((len(scores), len(pair_columns(scores.shape[1])[0])))


def lengths(answers: Answers, shape: tuple[int, int]) -> Floats:
    """Characters of each turn of the first sample: (prompts, entrants, turns), NaN where there is no answer."""
    characters = np.full((*shape, answers.characters.shape[1]), np.nan)
    first = answers.sample == 0
    characters[answers.row[first], answers.entrant[first]] = answers.characters[first]
    return characters


def share(rows: Ints, points: Floats, *, seed: int) -> Estimate:
    """Mean of points (0, 1/2, 1), several of which may belong to one prompt: rows (n,), points (n,).

    The interval is over prompts, whose points are not independent. `n` counts prompts.
    """
    if not len(rows):
        return Estimate(value=None, n=0)
    _, place = np.unique(rows, return_inverse=True)
    total, number = np.bincount(place, weights=points), np.bincount(place)
    means = total / number
    if number.max() == 1 or len(set(means.tolist())) == 1:
        # Equal items resample to an interval without width, which they don't prove.
        decided = means[means != 0.5]
        return win_rate_interval(decided.sum(), len(means) - len(decided), (1 - decided).sum())
    return ratio_interval(total, number, seed=seed)


def longer_share(rows: Ints, signs: Floats, first: Floats, second: Floats, *, seed: int) -> Estimate:
    """How often the longer of two answers is better, ties 1/2; answers of one length don't count.

    rows (n,), signs of the first (n,), lengths of both (n,).
    """
    difference = first - second
    used = np.isfinite(signs) & np.isfinite(difference) & (difference != 0)
    points = (signs[used] * np.sign(difference[used]) + 1) / 2
    return share(rows[used], points, seed=seed)


def longer_share_of_scores(rows: Ints, scores: Floats, characters: Floats, *, seed: int) -> Estimate:
    """The same over all pairs of each row: rows (n,), scores and characters (n, entrants)."""
    first, second = pair_columns(scores.shape[1])
    signs = signs_of(scores)
    flat = np.repeat(rows, len(first))
    return longer_share(flat, signs.ravel(), characters[:, first].ravel(), characters[:, second].ravel(), seed=seed)


def family_share(source: Source, own: Bools, among: Floats, *, seed: int) -> Estimate:
    """How often a source prefers answers of the entrants `own` to those of others, where `among` (prompts, pairs) is
    finite as well."""
    first, second = pair_columns(len(own))
    mixed = own[first] != own[second]
    signs = np.where(own[first], source.signs, -source.signs)
    used = np.isfinite(signs) & np.isfinite(among) & mixed
    rows, _ = np.nonzero(used)
    return share(rows, (signs[used] + 1) / 2, seed=seed)


def names_of(data: EvaluationData, columns: Sequence[int] | Ints) -> list[str]:
    return [data.entrants[int(column)].name for column in columns]


def moved(rows: Sequence[ScoreRow], scale: float, shift: float) -> list[ScoreRow]:
    """Means x -> scale x + shift; scale > 0."""

    def move(value: float | None) -> float | None:
        return None if value is None else scale * value + shift

    return [
        ScoreRow(
            entrant=row.entrant,
            mean=Estimate(value=move(row.mean.value), low=move(row.mean.low), high=move(row.mean.high), n=row.mean.n),
        )
        for row in rows
    ]
