"""The win rate at equal length, from all items: a logistic regression on the lengths of both answers."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import scipy
from numpy.typing import ArrayLike

from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.bootstrap import MIN_ITEMS, Floats

_Z = NormalDist().inv_cdf(0.975)
_STEPS = 50
# Beyond this a coefficient is that of a chance of 0 or 1: the wins are separated by length, or all alike.
_FARTHEST = 20.0


def length_adjusted(values: ArrayLike, lengths: ArrayLike, other_lengths: ArrayLike) -> Estimate:
    """values (items,): 1 for a win, 1/2 for a tie, 0 for a loss, NaN left out; lengths of both answers, above 0.

    logit(value) = w0 + w1 log(length / other length); the estimate is sigma(w0). Its 95% interval is Wald's on the
    scale of w0, with the variance that holds whatever the values' distribution is (White's, HC1). No value where the
    likelihood has no maximum, and below 8 items.
    """
    value = np.asarray(values, dtype=np.float64)
    ours, others = (np.asarray(each, dtype=np.float64) for each in (lengths, other_lengths))
    known = np.isfinite(value) & (ours > 0) & (others > 0)
    value, longer = value[known], np.log(ours[known] / others[known])
    n = len(value)
    rows = np.column_stack([np.ones(n), longer])
    # Lengths that are all of one ratio are the intercept once more.
    weights = _maximum(rows, value) if n >= MIN_ITEMS and np.linalg.matrix_rank(rows) > 1 else None
    if weights is None:
        return Estimate(value=None, n=n)
    p = scipy.special.expit(rows @ weights)
    bread = np.linalg.pinv((rows * (p * (1 - p))[:, None]).T @ rows)
    scores = rows * (value - p)[:, None]
    variance = (bread @ (scores.T @ scores) @ bread)[0, 0] * n / (n - 2)
    ends = scipy.special.expit(weights[0] + np.array([-1, 1]) * _Z * np.sqrt(variance))
    if not variance > 0:
        return Estimate(value=float(scipy.special.expit(weights[0])), n=n)
    return Estimate(value=float(scipy.special.expit(weights[0])), low=float(ends[0]), high=float(ends[1]), n=n)


def _maximum(rows: Floats, value: Floats) -> Floats | None:
    """Newton's method; None where a coefficient has no end."""
    coefficients = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        p = scipy.special.expit(rows @ coefficients)
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows
        step = np.linalg.lstsq(hessian, rows.T @ (value - p), rcond=None)[0]
        coefficients += step
        if np.abs(coefficients).max() > _FARTHEST:
            return None
        if np.abs(step).max() < 1e-10:
            return coefficients
    return None
