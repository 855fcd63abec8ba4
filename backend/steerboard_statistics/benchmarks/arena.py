"""Leaderboards of battles between many models, as of the Chatbot Arena (Chiang et al., arXiv 2403.04132): Bradley-Terry
and Elo ratings, the matrix of win rates, separability, and control for style (lmarena's blog of August 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from steerboard_statistics.bootstrap import MIN_ITEMS
from steerboard_statistics.bradley_terry import comparable

Floats = NDArray[np.float64]

SCALE, START, STEP = 400.0, 1000.0, 4.0
DRAWS = 1000
_SEED = 42
_LOG_BASE = float(np.log(10.0))
_STEPS = 60
# Ratings of draws in which a model won or lost everything.
_FARTHEST = 15.0
# Of the style's coefficients: without it, a feature that separates wins from losses has no maximum.
_RIDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Battle:
    """`value`: 1, 0.5 or 0, the share of the win that is a's. `style`: of a's answer and of b's, each feature by name;
    None where the texts are not known."""

    a: str
    b: str
    value: float
    style: tuple[Mapping[str, float], Mapping[str, float]] | None = None


@dataclass(frozen=True, slots=True)
class Rating:
    """On the scale 400 to the base 10, with a mean of 1000. `low` and `high`: 2.5 and 97.5 percentiles over draws of
    battles; `elo`: in the order of the battles, K = 4."""

    model: str
    rating: float
    low: float | None
    high: float | None
    elo: float
    n: int
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Best first. `unrated`: models without a chain of wins to and from the others, who have no finite rating. `style`:
    the coefficient of each feature in units of log-odds a standard deviation, if styles were controlled for.
    `separability`: share of the pairs of models whose intervals do not overlap."""

    ratings: list[Rating]
    unrated: list[str]
    style: dict[str, float] | None
    separability: float | None


def leaderboard(
    battles: Sequence[Battle], *, styled: bool = False, draws: int = DRAWS, seed: int = _SEED
) -> Leaderboard:
    """Of battles in their order in time. `styled`: with the differences of both answers' style as further regressors;
    only battles whose styles are known count then. A battle of a model with itself does not count.

    Raises `ValueError` where no two models can be rated.
    """
    used = [one for one in battles if one.a != one.b and (one.style is not None or not styled)]
    names = sorted({name for one in used for name in (one.a, one.b)})
    place = {name: index for index, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    for one in used:
        wins[place[one.a], place[one.b]] += one.value
        wins[place[one.b], place[one.a]] += 1 - one.value
    members = comparable(wins)
    if len(members) < 2:
        raise ValueError("no two models have won and lost against each other, be it by way of others")
    rated = [names[index] for index in members]
    kept = [one for one in used if one.a in rated and one.b in rated]
    design, kinds = _design(kept, rated, styled)
    fit = _fit(design, kinds.values, kinds.counts, len(rated))
    drawn = _drawn(design, kinds, len(rated), draws, seed)
    ends = np.percentile(drawn, [2.5, 97.5], axis=0) if draws and len(kept) >= MIN_ITEMS else None
    elo = _elo(used)
    found = []
    for index, name in enumerate(rated):
        mine = [one.value if one.a == name else 1 - one.value for one in kept if name in (one.a, one.b)]
        found.append(
            Rating(
                model=name,
                rating=float(_scaled(fit[index])),
                low=None if ends is None else float(ends[0, index]),
                high=None if ends is None else float(ends[1, index]),
                elo=elo[name],
                n=len(mine),
                wins=mine.count(1.0),
                ties=mine.count(0.5),
                losses=mine.count(0.0),
            )
        )
    found.sort(key=lambda one: (-one.rating, one.model))
    features = _features(kept) if styled else []
    return Leaderboard(
        ratings=found,
        unrated=sorted({name for one in battles for name in (one.a, one.b)} - set(rated)),
        style={name: float(fit[len(rated) + k]) for k, name in enumerate(features)} if styled else None,
        separability=_separability(found),
    )


def win_matrix(battles: Sequence[Battle]) -> dict[str, dict[str, float]]:
    """{model: {rival: (wins + ties / 2) / battles}} of the pairs that fought."""
    points: dict[str, dict[str, list[float]]] = {}
    for one in battles:
        if one.a != one.b:
            points.setdefault(one.a, {}).setdefault(one.b, []).append(one.value)
            points.setdefault(one.b, {}).setdefault(one.a, []).append(1 - one.value)
    return {
        name: {rival: float(np.mean(values)) for rival, values in sorted(mine.items())}
        for name, mine in sorted(points.items())
    }


@dataclass(frozen=True)
class _Kinds:
    """Battles that are alike, once: `values` and `counts` (kinds,)."""

    values: Floats
    counts: Floats


def _design(battles: Sequence[Battle], names: Sequence[str], styled: bool) -> tuple[Floats, _Kinds]:
    """(kinds, models and features) of +1 for a, -1 for b, and the standardised difference of the styles."""
    place = {name: index for index, name in enumerate(names)}
    features = _features(battles) if styled else []
    rows = np.zeros((len(battles), len(names) + len(features)))
    for row, one in enumerate(battles):
        rows[row, place[one.a]], rows[row, place[one.b]] = 1, -1
        for column, name in enumerate(features, len(names)):
            mine, theirs = (side.get(name, 0.0) for side in one.style or ({}, {}))
            # As lmarena: the difference over the sum, so that 100 more words of 200 weigh as much as 10 of 20.
            rows[row, column] = (mine - theirs) / (mine + theirs) if mine + theirs else 0.0
    spread = rows[:, len(names) :].std(axis=0)
    rows[:, len(names) :] /= np.where(spread > 0, spread, 1)
    values = np.array([one.value for one in battles])
    if features:
        return rows, _Kinds(values, np.ones(len(battles)))
    unique, counts = np.unique(np.column_stack([rows, values]), axis=0, return_counts=True)
    return unique[:, :-1], _Kinds(unique[:, -1], counts.astype(float))


def _features(battles: Sequence[Battle]) -> list[str]:
    return sorted({name for one in battles for side in one.style or () for name in side})


def _fit(design: Floats, values: Floats, counts: Floats, models: int, start: Floats | None = None) -> Floats:
    """Natural logarithms of the strengths with a mean of 0, then the style's coefficients, by Newton's method."""
    found = np.zeros(design.shape[1]) if start is None else start.copy()
    ridge = np.full(len(found), _RIDGE)
    for _ in range(_STEPS):
        p = scipy.special.expit(design @ found)
        gradient = design.T @ (counts * (values - p)) - ridge * found
        hessian = (design * (counts * p * (1 - p))[:, None]).T @ design + np.diag(ridge)
        step = np.clip(np.linalg.solve(hessian, gradient), -2, 2)
        found = np.clip(found + step, -_FARTHEST, _FARTHEST)
        if np.abs(step).max() < 1e-8:
            break
    found[:models] -= found[:models].mean()
    return found


def _drawn(design: Floats, kinds: _Kinds, models: int, draws: int, seed: int) -> Floats:
    """Ratings (draws, models) of battles drawn with replacement."""
    random = np.random.default_rng(seed)
    total = int(kinds.counts.sum())
    start = _fit(design, kinds.values, kinds.counts, models)
    drawn = np.array(
        [
            _fit(design, kinds.values, random.multinomial(total, kinds.counts / total).astype(float), models, start)
            for _ in range(draws)
        ]
    ).reshape(draws, -1)
    return _scaled(drawn[:, :models])


def _scaled(logs: Floats) -> Floats:
    return np.asarray(START + logs * SCALE / _LOG_BASE)


def _elo(battles: Sequence[Battle]) -> dict[str, float]:
    """K = 4, from 1000, battle after battle."""
    rating = {name: START for one in battles for name in (one.a, one.b)}
    for one in battles:
        expected = 1 / (1 + 10 ** ((rating[one.b] - rating[one.a]) / SCALE))
        rating[one.a] += STEP * (one.value - expected)
        rating[one.b] -= STEP * (one.value - expected)
    return rating


def _separability(ratings: Sequence[Rating]) -> float | None:
    ends = [(one.low, one.high) for one in ratings if one.low is not None and one.high is not None]
    if len(ends) < 2:
        return None
    pairs = [(a, b) for index, a in enumerate(ends) for b in ends[index + 1 :]]
    return sum(a[0] > b[1] or b[0] > a[1] for a, b in pairs) / len(pairs)
