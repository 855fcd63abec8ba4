"""Bradley-Terry strengths: P(a beats b) = s_a / (s_a + s_b), a tie being half a win of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from steerboard_contracts.report.sections.comparison import Strength
from steerboard_statistics.bootstrap import MIN_ITEMS, Floats, bounds, estimate

# An interval is given only if all but a few resamples have finite strengths.
MOST_UNFITTED = 0.025
_STEPS = 40


def strengths(wins: Floats) -> Floats:
    """Maximum-likelihood strengths with a geometric mean of 1; wins (entrants, entrants) of row over column, ties 1/2.

    Finite only among entrants each of whom has beaten and lost to the others, directly or via others; the rest (such as
    one that won everything) are NaN, and the likelihood of the others is then what it would be without them.
    """
    import evalica  # a second with pandas, which no other request of the API should wait for

    fitted = np.full(len(wins), np.nan)
    members = comparable(wins)
    if len(members) < 2:
        return fitted
    rows, columns = np.nonzero(wins[np.ix_(members, members)])
    weights = wins[np.ix_(members, members)][rows, columns]
    result = evalica.bradley_terry(
        rows.tolist(),
        columns.tolist(),
        [evalica.Winner.X] * len(rows),
        weights=weights.tolist(),
        tolerance=1e-10,
        limit=100_000,
    )
    logs = np.log(result.scores.reindex(range(len(members))).to_numpy(dtype=np.float64))
    fitted[members] = np.exp(logs - logs.mean())
    return fitted


def comparable(wins: Any) -> list[int]:
    """The largest set of entrants each of whom is linked to each by wins in both directions; wins may be sparse."""
    count, labels = scipy.sparse.csgraph.connected_components(wins > 0, directed=True, connection="strong")
    if not count:
        return []
    return [int(i) for i in np.flatnonzero(labels == np.bincount(labels).argmax())]


def strength_rows(
    entrants: Sequence[str], wins: Floats, drawn: Floats, counts: Sequence[int], n: int
) -> list[Strength]:
    """Strengths with bootstrap intervals.

    wins (entrants, entrants); drawn (resamples, entrants, entrants): the same in each resample of the `n` items;
    counts: items of each entrant.
    """
    values = strengths(wins)
    members = np.flatnonzero(np.isfinite(values))
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    if len(members) and n >= MIN_ITEMS:
        draws = np.exp(log_strengths(drawn[:, members[:, None], members]))
        if np.isnan(draws[:, 0]).mean() <= MOST_UNFITTED:
            low[members], high[members] = bounds(draws, n)
    return [
        Strength(entrant=name, strength=estimate(value, lo, hi, count))
        for name, value, lo, hi, count in zip(entrants, values, low, high, counts, strict=True)
    ]


def log_strengths(wins: Floats) -> Floats:
    """Log strengths of many tables at once, mean 0: wins (tables, m, m) -> (tables, m), NaN where none are finite.

    Newton's method on the log-likelihood, equal to `strengths` and some hundred times as fast over resamples.
    """
    tables, m, _ = wins.shape
    scores = np.full((tables, m), np.nan)
    fit = np.flatnonzero(_linked(wins > 0))
    if not len(fit):
        return scores
    won = wins[fit]
    played = won + won.transpose(0, 2, 1)
    total = won.sum(axis=2)
    logs = np.zeros((len(fit), m))
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(logs[:, None, :] - logs[:, :, None]))
        gradient = total - (played * chance).sum(axis=2)
        weight = played * chance * (1 - chance)
        # The likelihood does not change when all logs move together: adding 1/m makes the matrix regular.
        hessian = -weight + 1 / m
        hessian[:, np.arange(m), np.arange(m)] += weight.sum(axis=2)
        # Long steps overshoot where one entrant nearly always wins.
        step = np.clip(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], -2, 2)
        logs += step
        if np.abs(step).max() < 1e-9:
            break
    scores[fit] = logs - logs.mean(axis=1, keepdims=True)
    return scores


def _linked(beats: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the directed graphs (tables, m, m) are strongly connected."""
    m = beats.shape[1]
    reach: Floats = beats + np.eye(m)
    for _ in range(max(m - 1, 1).bit_length()):
        reach = np.minimum(reach @ reach, 1.0)
    linked: NDArray[np.bool_] = np.asarray(reach.reshape(-1, m * m).min(axis=1) > 0, dtype=np.bool_)
    return linked
