"""Leaderboards of battles between many models, as of the Chatbot Arena (Chiang et al., arXiv 2403.04132): Bradley-Terry
and Elo ratings, the matrix of win rates, separability, and control for style (lmarena's blog of August 2024). Battles
of more than two are given as pairs: see `battles`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from steerboard_statistics.benchmarks.battles import Floats, Kinds, Pair, by_battle, kinds_of, outcomes, weights
from steerboard_statistics.bootstrap import MIN_ITEMS
from steerboard_statistics.bradley_terry import comparable

SCALE, START, STEP = 400.0, 1000.0, 4.0
DRAWS = 1000
_SEED = 42
_LOG_BASE = float(np.log(10.0))
_STEPS = 60
# Ratings of draws in which a model won or lost everything.
_FARTHEST = 15.0
# The ridge of the style's coefficients: without it, a feature that separates wins from losses has no maximum.
_RIDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Rating:
    """On the scale 400 to the base 10, with a mean of 1000. `low` and `high`: 2.5 and 97.5 percentiles over draws of
    battles; `elo`: in the order of the battles, K = 4. `n`: its battles with a rated rival; `wins`: those where it was
    the best."""

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


def leaderboard(pairs: Sequence[Pair], *, styled: bool = False, draws: int = DRAWS, seed: int = _SEED) -> Leaderboard:
    """The leaderboard from the pairs of battles in their order in time. `styled`: with the differences of both answers'
    style as further regressors; only pairs whose styles are known count then. A pair of a model with itself does not
    count.

    Raises `ValueError` where no two models can be rated.
    """
    used = [one for one in pairs if one.a != one.b and (one.style is not None or not styled)]
    names = sorted({name for one in used for name in (one.a, one.b)})
    place = {name: index for index, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    for one in used:
        wins[place[one.a], place[one.b]] += one.value
        wins[place[one.b], place[one.a]] += 1 - one.value
    members = comparable(wins)
    if len(members) < 2:
        raise ValueError("no two models have won and lost against each other, directly or via others")
    rated = [names[index] for index in members]
    weight = weights(used)
    inside = [index for index, one in enumerate(used) if one.a in rated and one.b in rated]
    kept = [used[index] for index in inside]
    design, kinds = _design(kept, weight[inside], rated, styled)
    fit = _fit(design, kinds.values, kinds.weights(kinds.counts), len(rated))
    drawn = _drawn(design, kinds, len(rated), draws, seed)
    ends = np.percentile(drawn, [2.5, 97.5], axis=0) if draws and kinds.counts.sum() >= MIN_ITEMS else None
    elo = _elo(used, weight)
    shares = outcomes(kept)
    found = []
    for index, name in enumerate(rated):
        mine = shares[name]
        found.append(
            Rating(
                model=name,
                rating=float(_scaled(fit[index])),
                low=None if ends is None else float(ends[0, index]),
                high=None if ends is None else float(ends[1, index]),
                elo=elo[name],
                n=len(mine),
                wins=sum(share > 0.5 for share in mine),
                ties=mine.count(0.5),
                losses=sum(share < 0.5 for share in mine),
            )
        )
    found.sort(key=lambda one: (-one.rating, one.model))
    features = _features(kept) if styled else []
    return Leaderboard(
        ratings=found,
        unrated=sorted({name for one in pairs for name in (one.a, one.b)} - set(rated)),
        style={name: float(fit[len(rated) + k]) for k, name in enumerate(features)} if styled else None,
        separability=_separability(found),
    )


def win_matrix(pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """{model: {rival: (wins + ties / 2) / battles}} of the pairs that fought, each pair with its weight."""
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for one, weight in zip(pairs, weights(pairs), strict=True):
        if one.a != one.b:
            points.setdefault(one.a, {}).setdefault(one.b, []).append((one.value, weight))
            points.setdefault(one.b, {}).setdefault(one.a, []).append((1 - one.value, weight))
    return {
        name: {rival: _weighted_mean(values) for rival, values in sorted(mine.items())}
        for name, mine in sorted(points.items())
    }


def _weighted_mean(values: Sequence[tuple[float, float]]) -> float:
    value, weight = np.transpose(values)
    return float(np.average(value, weights=weight))


def _design(pairs: Sequence[Pair], weight: Floats, names: Sequence[str], styled: bool) -> tuple[Floats, Kinds]:
    """(kinds, models and features) of +1 for a, -1 for b, and the standardised difference of the styles."""
    place = {name: index for index, name in enumerate(names)}
    features = _features(pairs) if styled else []
    rows = np.zeros((len(pairs), len(names) + len(features)))
    for row, one in enumerate(pairs):
        rows[row, place[one.a]], rows[row, place[one.b]] = 1, -1
        for column, name in enumerate(features, len(names)):
            mine, theirs = (side.get(name, 0.0) for side in one.style or ({}, {}))
            # As lmarena: the difference over the sum, so that 100 more words of 200 weigh as much as 10 of 20.
            rows[row, column] = (mine - theirs) / (mine + theirs) if mine + theirs else 0.0
    spread = rows[:, len(names) :].std(axis=0)
    rows[:, len(names) :] /= np.where(spread > 0, spread, 1)
    values = np.array([one.value for one in pairs])
    if features:
        return rows, kinds_of(pairs, weight, range(len(pairs)), values)
    unique, kind = np.unique(np.column_stack([rows, values]), axis=0, return_inverse=True)
    return unique[:, :-1], kinds_of(pairs, weight, kind.reshape(-1).tolist(), unique[:, -1])


def _features(pairs: Sequence[Pair]) -> list[str]:
    return sorted({name for one in pairs for side in one.style or () for name in side})


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


def _drawn(design: Floats, kinds: Kinds, models: int, draws: int, seed: int) -> Floats:
    """Ratings (draws, models) of battles drawn with replacement, each with all of its pairs."""
    random = np.random.default_rng(seed)
    total = int(kinds.counts.sum())
    start = _fit(design, kinds.values, kinds.weights(kinds.counts), models)
    again = (random.multinomial(total, kinds.counts / total).astype(float) for _ in range(draws))
    drawn = np.array([_fit(design, kinds.values, kinds.weights(battles), models, start) for battles in again])
    return _scaled(drawn.reshape(draws, design.shape[1])[:, :models])


def _scaled(logs: Floats) -> Floats:
    return np.asarray(START + logs * SCALE / _LOG_BASE)


def _elo(pairs: Sequence[Pair], weight: Floats) -> dict[str, float]:
    """K = 4, from 1000, battle after battle; all pairs of a battle start from the same ratings."""
    rating = {name: START for one in pairs for name in (one.a, one.b)}
    for places in by_battle(pairs):
        gained = []
        for place in places:
            one = pairs[place]
            expected = 1 / (1 + 10 ** ((rating[one.b] - rating[one.a]) / SCALE))
            gained.append((one, STEP * float(weight[place]) * (one.value - expected)))
        for one, points in gained:
            rating[one.a] += points
            rating[one.b] -= points
    return rating


def _separability(ratings: Sequence[Rating]) -> float | None:
    ends = [(one.low, one.high) for one in ratings if one.low is not None and one.high is not None]
    if len(ends) < 2:
        return None
    pairs = [(a, b) for index, a in enumerate(ends) for b in ends[index + 1 :]]
    return sum(a[0] > b[1] or b[0] > a[1] for a, b in pairs) / len(pairs)
