"""Ranks into scores, and how often each entrant has each rank."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike

from steerboard_contracts.report.sections.comparison import Friedman
from steerboard_statistics.bootstrap import Floats


def rank_scores(ranks: ArrayLike) -> Floats:
    """N + 1 - r, ties at their average rank (the paper's 6 - rank for five); ranks (..., N), 1 the best.

    Any numbers in the right order will do (1, 1, 2 or 1, 1, 3), NaN is an entrant that was not ranked and N counts
    the others.
    """
    data = np.asarray(ranks, dtype=np.float64)
    if data.size == 0:
        return data
    average: Floats = scipy.stats.rankdata(data, axis=-1, nan_policy="omit")
    there = np.isfinite(data).sum(axis=-1, keepdims=True)
    scores: Floats = there + 1 - average
    return scores


def rank_shares(scores: ArrayLike) -> tuple[Floats, list[int]]:
    """How often each entrant is first, second, ...: scores (items, entrants) -> (entrants, ranks), and n of each.

    Entrants that share places share them out: two that are best are half first, half second. An item counts for the
    entrants that are on it.
    """
    data = without_noise(scores)
    entrants = data.shape[1]
    shares, counted = np.zeros((entrants, entrants)), []
    for entrant in range(entrants):
        own = data[np.isfinite(data[:, entrant])]
        better = (own > own[:, [entrant]]).sum(axis=1)
        equal = (own == own[:, [entrant]]).sum(axis=1)
        for place in range(entrants):
            shares[entrant, place] = (((place >= better) & (place < better + equal)) / np.maximum(equal, 1)).sum()
        counted.append(len(own))
        shares[entrant] /= max(len(own), 1)
    return shares, counted


def friedman(scores: ArrayLike) -> Friedman | None:
    """Friedman's test that no entrant is better, with the correction for ties, over items that have all entrants.

    scores (items, entrants). None for fewer than three entrants or two items, and when every item ties all of them.
    """
    data = without_noise(scores)
    data = data[np.isfinite(data).all(axis=1)]
    items, entrants = data.shape
    if entrants < 3 or items < 2:
        return None
    ranks = scipy.stats.rankdata(data, axis=1)
    # Equal to the sum of t^3 - t over the groups of ties, without looking for the groups.
    spread = ((ranks - (entrants + 1) / 2) ** 2).sum()
    if spread == 0:
        return None
    statistic = (entrants - 1) * ((ranks.sum(axis=0) - items * (entrants + 1) / 2) ** 2).sum() / spread
    return Friedman(
        statistic=float(statistic),
        p=float(scipy.special.chdtrc(entrants - 1, statistic)),
        entrants=entrants,
        items=items,
    )


def without_noise(scores: ArrayLike) -> Floats:
    """The scores, equal ones made equal to the last bit: an average of (0.1, 0.2) and of (0.3, 0) is the same.

    Rounded to 1e-12 of the largest; what is not finite becomes NaN.
    """
    data = np.asarray(scores, dtype=np.float64)
    data = np.where(np.isfinite(data), data, np.nan)
    largest = float(np.nanmax(np.abs(data), initial=0.0))
    if not 1e-290 < largest < 1e290:
        return data
    rounded: Floats = np.round(data, 12 - int(np.floor(np.log10(largest))))
    return rounded
