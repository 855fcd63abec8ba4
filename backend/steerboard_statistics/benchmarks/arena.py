"""Leaderboards of battles between many models, as of the Chatbot Arena (Chiang et al., arXiv 2403.04132): Bradley-Terry
and Elo ratings, the matrix of win rates, separability, and control for style (lmarena's blog of August 2024). Battles
of more than two are given as pairs: see `battles`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steerboard_statistics.benchmarks.arena_fit import design_of, drawn, features_of, fit, wins
from steerboard_statistics.benchmarks.battles import Floats, Pair, by_battle, outcomes, weights
from steerboard_statistics.bootstrap import MIN_ITEMS
from steerboard_statistics.bradley_terry import MOST_UNFITTED, comparable

SCALE, START, STEP = 400.0, 1000.0, 4.0
DRAWS = 1000
_SEED = 42
_LOG_BASE = float(np.log(10.0))
# Points of rating, by which draws of ties alone may differ in rounding.
_ALIKE = 1e-6
# Draws of as many models take their time, and the ends of intervals need no more.
_MANY, _FEWER_DRAWS = 400, 200


@dataclass(frozen=True, slots=True)
class Rating:
    """On the scale 400 to the base 10, with a mean of 1000. `low` and `high`: 2.5 and 97.5 percentiles over draws of
    battles, None where all draws are alike, as of ties alone, or more than 2.5% have no finite rating of the model.
    `elo`: in the order of the battles, K = 4; `n`: its battles with a rated rival; `wins`: those where it was the
    best."""

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
    rated = [names[index] for index in comparable(_wins(used, names))] if used else []
    if len(rated) < 2:
        raise ValueError("no two models have won and lost against each other, directly or via others")
    weight, members = weights(used), set(rated)
    inside = [index for index, one in enumerate(used) if one.a in members and one.b in members]
    kept = [used[index] for index in inside]
    features = features_of(kept) if styled else []
    design = design_of(kept, weight[inside], rated, features)
    logs = fit(design, design.kinds.weights(design.kinds.counts))
    again = min(draws, _FEWER_DRAWS) if len(rated) > _MANY else draws
    ends = _ends(_scaled(drawn(design, logs, again, seed)), int(design.kinds.counts.sum()))
    elo = _elo(used, weight)
    shares = outcomes(kept)
    found = []
    for index, name in enumerate(rated):
        mine = shares[name]
        found.append(
            Rating(
                model=name,
                rating=float(_scaled(logs[index])),
                low=ends[index][0],
                high=ends[index][1],
                elo=elo[name],
                n=len(mine),
                wins=sum(share > 0.5 for share in mine),
                ties=mine.count(0.5),
                losses=sum(share < 0.5 for share in mine),
            )
        )
    found.sort(key=lambda one: (-one.rating, one.model))
    return Leaderboard(
        ratings=found,
        unrated=sorted({name for one in pairs for name in (one.a, one.b)} - members),
        style={name: float(logs[len(rated) + k]) for k, name in enumerate(features)} if styled else None,
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
    return math.fsum(value * weight for value, weight in values) / math.fsum(weight for _, weight in values)


def _wins(pairs: Sequence[Pair], names: Sequence[str]) -> Any:
    place = {name: index for index, name in enumerate(names)}
    table = np.array([(place[one.a], place[one.b], one.value) for one in pairs])
    a, b = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    return wins(a, b, table[:, 2], np.ones(len(table)), len(names))


def _ends(ratings: Floats, battles: int) -> list[tuple[float, float] | tuple[None, None]]:
    """Percentiles of ratings (draws, models), of each model."""
    draws, models = ratings.shape
    if not draws or battles < MIN_ITEMS:
        return [(None, None)] * models
    found: list[tuple[float, float] | tuple[None, None]] = []
    for mine in ratings.T:
        finite = mine[np.isfinite(mine)]
        if len(finite) < (1 - MOST_UNFITTED) * draws:
            found.append((None, None))
            continue
        low, high = (float(end) for end in np.percentile(finite, [2.5, 97.5]))
        found.append((low, high) if high - low > _ALIKE else (None, None))
    return found


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
    ends = np.array([(one.low, one.high) for one in ratings if one.low is not None and one.high is not None])
    if len(ends) < 2:
        return None
    above = (ends[:, :1] > ends[:, 1]).sum()
    return float(above / (len(ends) * (len(ends) - 1) / 2))
