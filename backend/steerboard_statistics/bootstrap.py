"""Bootstrap intervals for means and ratios over items.

All bootstrap intervals are 95% percentile intervals over items, expanded for the sample's size: the tail of a
resampled mean is too short by sqrt((n - 1) / n), and a normal quantile is used where Student's belongs. So percentiles
are taken at Phi(-sqrt(n / (n - 1)) t) instead of 2.5% (Hesterberg, "What Teachers Should Know about the Bootstrap",
2015). On the side of a long tail this is still too short for few items, so means and ratios take the end of Student's
interval, corrected for skewness, where it is further out (`skewed_ends`). `make bench-coverage` measures how often
intervals cover the truth. The studentised bootstrap does as well, but its draws have no spread to divide by where
nearly all items are tied; BCa does not do as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from steerboard_contracts.report.estimate import Estimate

Floats = NDArray[np.float64]

RESAMPLES = 2000
# Fewer items give no interval: of five, even expanded percentiles cover 83 to 92% only.
MIN_ITEMS = 8
# More items than this are resampled in that many random groups: the same variance, and the cost stops growing.
MOST_GROUPS = 2000
_DRAWN_AT_ONCE = 500
_TAIL = 0.025
# The ends of an interval that differ by no more than this, relative to their size, differ by rounding errors of draws.
_FLAT = 1e-12
# The coefficient of `skewed_ends` below which the transformation is the identity up to rounding.
_SYMMETRIC = 1e-7


class Interval(NamedTuple):
    mean: float
    low: float
    high: float


class Resamples:
    """Draws of `items` items with replacement. Figures that share them are compared on the same draws."""

    def __init__(self, items: int, resamples: int = RESAMPLES, seed: int = 0) -> None:
        random = np.random.Generator(np.random.PCG64(seed))
        groups = min(items, MOST_GROUPS)
        self._groups = random.permutation(items) % groups if items > groups else None
        # How often each item occurs in each resample, so that sums are one product.
        self._counts: Floats = np.zeros((resamples, groups))
        for start in range(0, resamples if groups else 0, _DRAWN_AT_ONCE):
            rows = self._counts[start : start + _DRAWN_AT_ONCE]
            drawn = random.integers(0, groups, size=rows.shape) + np.arange(len(rows))[:, None] * groups
            rows[:] = np.bincount(drawn.ravel(), minlength=rows.size).reshape(rows.shape)
        self.items = items
        self.resamples = resamples

    def sums(self, values: ArrayLike) -> Floats:
        """Sums over each resample: (items, k) -> (resamples, k). No NaN."""
        data = np.asarray(values, dtype=np.float64)
        if self._groups is not None:
            grouped = np.zeros((MOST_GROUPS, data.shape[1]))
            np.add.at(grouped, self._groups, data)
            data = grouped
        drawn: Floats = self._counts @ data
        return drawn

    def means(self, values: ArrayLike) -> Floats:
        """Means over each resample: (items, k), NaN for what is missing -> (resamples, k), NaN where all is."""
        data = np.asarray(values, dtype=np.float64)
        there = np.isfinite(data)
        if there.all() and self._groups is None:
            return self.sums(data) / max(self.items, 1)
        drawn = self.sums(np.hstack([np.where(there, data, 0.0), there]))
        width = data.shape[1]
        return divide(drawn[:, :width], drawn[:, width:])

    def interval(self, values: Sequence[float]) -> Interval:
        """Mean with its 95% interval; values (items,), however few. One item has no width."""
        data = np.asarray(values, dtype=np.float64)
        mean = float(data.mean())
        low, high = _mean_ends(self.means(data[:, None]), data[:, None], self.items)
        # A percentile of constant values may be a rounding error beyond them.
        return Interval(mean, min(float(low[0]), mean), max(float(high[0]), mean))

    def estimates(self, values: Floats) -> list[Estimate]:
        """Column means with their intervals: (items, k), NaN for what is missing -> k estimates. No interval of fewer
        than 8 items, nor of items that are all equal."""
        counts = np.isfinite(values).sum(axis=0)
        means, draws = divide(np.nansum(values, axis=0), counts), self.means(values)
        low, high = np.full(len(means), np.nan), np.full(len(means), np.nan)
        for n in {int(n) for n in counts if n >= MIN_ITEMS}:
            columns = np.flatnonzero(counts == n)
            low[columns], high[columns] = _without_flat(*_mean_ends(draws[:, columns], values[:, columns], n))
        return [estimate(*figure) for figure in zip(means, low, high, counts.tolist(), strict=True)]


def bounds(draws: Floats, n: int) -> tuple[Floats, Floats]:
    """`percentiles` of a figure's draws, NaN where they have no width: items that are all equal resample to themselves,
    which does not prove that other items are like them."""
    return _without_flat(*percentiles(draws, n))


def _without_flat(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    flat = ~(high - low > _FLAT * np.maximum(np.abs(low), np.abs(high)))
    return np.where(flat, np.nan, low), np.where(flat, np.nan, high)


def percentiles(draws: Floats, n: int) -> tuple[Floats, Floats]:
    """Low and high end of the 95% interval over `n` items: draws (resamples, k) -> (k,) each, NaN left out."""
    tail = tail_share(n)
    missing = np.isnan(draws)
    if not missing.any():
        low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
        return low, high
    ends = np.full((2, draws.shape[1]), np.nan)
    for column in np.flatnonzero(~missing.all(axis=0)):
        ends[:, column] = np.quantile(draws[~missing[:, column], column], [tail, 1 - tail])
    return ends[0], ends[1]


def tail_share(n: int) -> float:
    """What is cut off at each end for `n` items: 2.5% for many, less for few."""
    if n < 2:
        return 0.0
    quantile = scipy.special.stdtrit(n - 1, 1 - _TAIL)
    return float(scipy.special.ndtr(-math.sqrt(n / (n - 1)) * quantile))


def skewed_ends(values: Floats) -> tuple[Floats, Floats]:
    """Ends of the 95% interval of column means by Student's t, corrected for skewness: (items, k), NaN for what is
    missing -> (k,) each, within the range of the items; NaN for fewer than two of them.

    The correction is Hall's cubic transformation (Journal of the Royal Statistical Society B 54, 1992, 221-228, eq. 2):
    g(T) = T + a T^2 + a^2 T^3 / 3 + a / 2 is nearly Student's t, for a = skewness / (3 sqrt(n)).
    """
    n = np.isfinite(values).sum(axis=0).astype(np.float64)
    mean = divide(np.nansum(values, axis=0), n)
    apart = values - mean
    variance = divide(np.nansum(apart**2, axis=0), n)
    a = divide(np.nansum(apart**3, axis=0), 3 * n**1.5 * variance**1.5)
    error = np.sqrt(divide(variance, n - 1))
    quantile = scipy.special.stdtrit(np.where(n > 1, n - 1, np.nan), 1 - _TAIL)
    low, high = (mean - error * _inverse(a, t - a / 2) for t in (quantile, -quantile))
    return np.fmax(low, np.fmin.reduce(values)), np.fmin(high, np.fmax.reduce(values))


def _inverse(a: Floats, t: Floats) -> Floats:
    """The T of T + a T^2 + a^2 T^3 / 3 = t. Without skewness it is t."""
    return np.where(np.abs(a) < _SYMMETRIC, t, divide(np.cbrt(1 + 3 * a * t) - 1, a))


def _mean_ends(draws: Floats, values: Floats, n: int) -> tuple[Floats, Floats]:
    """Ends of the intervals of means over `n` items: draws (resamples, k), values (items, k) -> (k,) each."""
    low, high = percentiles(draws, n)
    if n < 2:
        return low, high
    further_low, further_high = skewed_ends(values)
    return np.fmin(low, further_low), np.fmax(high, further_high)


def estimate(value: float | None, low: float | None, high: float | None, n: int) -> Estimate:
    """An `Estimate` with None for whatever is not finite; no interval without a value or with one end only."""
    if value is None or not math.isfinite(value):
        return Estimate(value=None, n=int(n))
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return Estimate(value=float(value), n=int(n))
    # As in `Resamples.interval`.
    return Estimate(value=float(value), low=float(min(low, value)), high=float(max(high, value)), n=int(n))


@lru_cache(maxsize=1)
def _drawn(items: int, resamples: int, seed: int) -> Resamples:
    """One after the other, most figures of a report are over equally many items; drawing costs more than using."""
    return Resamples(items, resamples, seed)


def mean_interval(values: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Mean over items; values (items,), NaN left out. No interval below 8 items, no value without any."""
    data = np.asarray(values, dtype=np.float64)
    data = np.sort(data[np.isfinite(data)])  # the same figure in any order of the items
    if data.size < MIN_ITEMS:
        return estimate(float(data.mean()) if data.size else None, None, None, data.size)
    return _drawn(data.size, resamples, seed).estimates(data[:, None])[0]


def ratio_interval(
    numerators: ArrayLike, denominators: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Mean of one over mean of the other on the same items, both (items,); items with a NaN are left out.

    One and the same ratio on all items has an interval without width: of lengths or counts that is not a coincidence.
    """
    pairs = np.column_stack([np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)])
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    pairs = pairs[np.lexsort(pairs.T)]
    n = len(pairs)
    top, bottom = pairs.sum(axis=0)
    value = top / bottom if bottom else math.nan
    if n < MIN_ITEMS:
        return estimate(value, None, None, n)
    drawn = _drawn(n, resamples, seed).sums(pairs)
    low, high = percentiles(divide(drawn[:, :1], drawn[:, 1:]), n)
    if bottom:
        # What an item moves the ratio by, so that the ratio is a mean of them to first order.
        further_low, further_high = skewed_ends(value + (pairs[:, :1] - value * pairs[:, 1:]) * n / bottom)
        low, high = np.fmin(low, further_low), np.fmax(high, further_high)
    return estimate(value, low[0], high[0], n)


def divide(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, NaN where the bottom is 0."""
    out: Floats = np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=np.asarray(bottom) != 0)
    return out
