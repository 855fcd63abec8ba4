"""Leaderboards of battles between many models, as of the Chatbot Arena (Chiang et al., arXiv 2403.04132): Bradley-Terry
and Elo ratings, the matrix of win rates, separability, and control for style (lmarena's blog of August 2024). Battles
of more than two are given as pairs: see `battles`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steerboard_statistics.benchmarks.arena_fit import Beaten, design_of, drawn, features_of, fit
from steerboard_statistics.benchmarks.battles import Floats, PairedComparison, by_battle, outcomes, weights
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
    """A rating on the scale 400 to the base 10, with a mean of 1000. `low` and `high`: 2.5 and 97.5 percentiles over
    draws of battles, None where all draws are alike, as of ties alone, or more than 2.5% have no finite rating of the
    model. `elo`: in the order of the battles, K = 4; `n`: its battles with a rated rival; `wins`: those where it was
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


def leaderboard(
    pairs: Sequence[PairedComparison], *, styled: bool = False, draws: int = DRAWS, seed: int = _SEED
) -> Leaderboard:
    """The leaderboard from the pairs of battles in their order in time. `styled`: with the differences of both answers'
    style as further regressors; only pairs whose styles are known count then. A pair of a model with itself does not
    count.

    Raises `ValueError` where no two models can be rated.
    """
    used = [pair for pair in pairs if pair.a != pair.b and (pair.style is not None or not styled)]
    names = sorted({name for pair in used for name in (pair.a, pair.b)})
    rated = [names[index] for index in comparable(_beaten(used, names))] if used else []
    if len(rated) < 2:
        raise ValueError("no two models have won and lost against each other, directly or via others")
    weight, members = weights(used), set(rated)
    # The rows' order decides what is drawn of pairs that each are a kind of their own, as those with a style are.
    inside = sorted(
        (index for index, pair in enumerate(used) if pair.a in members and pair.b in members),
        key=lambda index: _content(used[index]),
    )
    kept = [used[index] for index in inside]
    features = features_of(kept) if styled else []
    design = design_of(kept, weight[inside], rated, features)
    logs = fit(design, design.kinds.weights(design.kinds.counts))
    again = min(draws, _FEWER_DRAWS) if len(rated) > _MANY else draws
    ends = _ends(_scaled(drawn(design, logs, again, seed)), int(design.kinds.counts.sum()))
    elo = _elo(used, weight)
    shares = outcomes(kept)
    ratings = []
    for index, name in enumerate(rated):
        own_shares = shares[name]
        ratings.append(
            Rating(
                model=name,
                rating=float(_scaled(logs[index])),
                low=ends[index][0],
                high=ends[index][1],
                elo=elo[name],
                n=len(own_shares),
                wins=sum(share > 0.5 for share in own_shares),
                ties=own_shares.count(0.5),
                losses=sum(share < 0.5 for share in own_shares),
            )
        )
    ratings.sort(key=lambda rating: (-rating.rating, rating.model))
    return Leaderboard(
        ratings=ratings,
        unrated=sorted({name for pair in pairs for name in (pair.a, pair.b)} - members),
        style={name: float(logs[len(rated) + k]) for k, name in enumerate(features)} if styled else None,
        separability=_separability(ratings),
    )


def _content(pair: PairedComparison) -> tuple[object, ...]:
    return pair.a, pair.b, pair.value, [sorted(side.items()) for side in pair.style or ()], pair.battle or ""


def win_matrix(pairs: Sequence[PairedComparison]) -> dict[str, dict[str, float]]:
    """{model: {rival: (wins + ties / 2) / battles}} of the pairs that fought, each pair with its weight."""
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for pair, weight in zip(pairs, weights(pairs), strict=True):
        if pair.a != pair.b:
            points.setdefault(pair.a, {}).setdefault(pair.b, []).append((pair.value, weight))
            points.setdefault(pair.b, {}).setdefault(pair.a, []).append((1 - pair.value, weight))
    return {
        name: {rival: _weighted_mean(values) for rival, values in sorted(rivals.items())}
        for name, rivals in sorted(points.items())
    }


def _weighted_mean(values: Sequence[tuple[float, float]]) -> float:
    return math.fsum(value * weight for value, weight in values) / math.fsum(weight for _, weight in values)


def _beaten(pairs: Sequence[PairedComparison], names: Sequence[str]) -> Any:
    place = {name: index for index, name in enumerate(names)}
    table = np.array([(place[pair.a], place[pair.b], pair.value) for pair in pairs])
    a, b = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    return Beaten.by(a, b, table[:, 2], len(names)).of(np.ones(len(table)))


def _ends(ratings: Floats, battles: int) -> list[tuple[float, float] | tuple[None, None]]:
    """Percentiles of ratings (draws, models), of each model."""
    draws, models = ratings.shape
    if not draws or battles < MIN_ITEMS:
        return [(None, None)] * models
    intervals: list[tuple[float, float] | tuple[None, None]] = []
    for column in ratings.T:
        finite = column[np.isfinite(column)]
        if len(finite) < (1 - MOST_UNFITTED) * draws:
            intervals.append((None, None))
            continue
        low, high = (float(end) for end in np.percentile(finite, [2.5, 97.5]))
        intervals.append((low, high) if high - low > _ALIKE else (None, None))
    return intervals


def _scaled(logs: Floats) -> Floats:
    return np.asarray(START + logs * SCALE / _LOG_BASE)


def _elo(pairs: Sequence[PairedComparison], weight: Floats) -> dict[str, float]:
    """K = 4, from 1000, battle after battle; all pairs of a battle start from the same ratings."""
    rating = {name: START for pair in pairs for name in (pair.a, pair.b)}
    for places in by_battle(pairs):
        gained = []
        for place in places:
            pair = pairs[place]
            expected = 1 / (1 + 10 ** ((rating[pair.b] - rating[pair.a]) / SCALE))
            gained.append((pair, STEP * float(weight[place]) * (pair.value - expected)))
        for pair, points in gained:
            rating[pair.a] += points
            rating[pair.b] -= points
    return rating


def _separability(ratings: Sequence[Rating]) -> float | None:
    ends = np.array(
        [(rating.low, rating.high) for rating in ratings if rating.low is not None and rating.high is not None]
    )
    if len(ends) < 2:
        return None
    above = (ends[:, :1] > ends[:, 1]).sum()
    return float(above / (len(ends) * (len(ends) - 1) / 2))
