"""Academic benchmarks: intervals of a task's figures, and of the difference of two models on the same items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.bootstrap import MIN_ITEMS, mean_interval
from steerboard_statistics.proportions import proportion_interval, win_rate_interval


def mean_of(scores: Sequence[float]) -> Estimate:
    """Mean of scores (items,): Wilson's interval where each is 0 or 1, else by the bootstrap over items."""
    if all(score in (0, 1) for score in scores):
        return proportion_interval(sum(scores), len(scores))
    return mean_interval(scores)


def paired_difference(ours: Sequence[float], others: Sequence[float]) -> Estimate:
    """Mean of ours - others over the same items, both (items,), with its 95% interval.

    Where every score is 0 or 1 it is a difference of matched proportions, and Tango's score interval (Statistics in
    Medicine 17, 1998), which also holds where the two hardly differ; else the bootstrap over items. None below 8 items.
    Raises `ValueError` for unequally many.
    """
    if len(ours) != len(others):
        raise ValueError(f"{len(ours)} scores cannot be paired with {len(others)}")
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(others, dtype=np.float64)
    if len(ours) < MIN_ITEMS or not all(score in (0, 1) for score in (*ours, *others)):
        return mean_interval(differences)
    wins, ties, losses = (int((differences == sign).sum()) for sign in (1, 0, -1))
    rate = win_rate_interval(wins, ties, losses)
    assert rate.low is not None
    assert rate.high is not None
    return Estimate(value=float(differences.mean()), low=2 * rate.low - 1, high=2 * rate.high - 1, n=rate.n)
