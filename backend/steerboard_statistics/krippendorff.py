"""Krippendorff's alpha: agreement of any number of coders, chance and gaps allowed for.

alpha = 1 - Do / De, the observed over the expected disagreement (Krippendorff, "Computing Krippendorff's
Alpha-Reliability", 2011). Disagreement of two values is 1 (nominal), the squared difference (interval), or the squared
number of ratings between them, half of each rating itself included (ordinal): that is the squared difference of their
average ranks among all ratings, so ordinal is interval on those ranks.

The krippendorff package gives alpha alone. An interval needs it for each of 2,000 resamples of items, which here are
one product with sums per item (`_parts`); the package also raises where there is nothing to agree on. Tests compare
ours with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.bootstrap import MIN_ITEMS, RESAMPLES, Floats, Resamples, bounds, divide, estimate

Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: ArrayLike, level: Level = "ordinal") -> float | None:
    """alpha of ratings (units, coders), NaN where a coder gave none. Units with one rating don't count.

    None without two ratings of one unit, and when all ratings are equal: then there is nothing to agree on.
    """
    parts, _ = _parts(ratings, level)
    alpha = _alpha(parts.sum(axis=0, keepdims=True), level)[0, 0]
    return float(alpha) if np.isfinite(alpha) else None


def alpha_interval(
    ratings: ArrayLike,
    level: Level = "ordinal",
    *,
    items: Sequence[int] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Estimate:
    """alpha with its bootstrap interval over units, or over `items` where several units (answers) belong to one.

    items (units,): equal numbers belong together and are drawn together. `n` counts items (or units) with two ratings
    of a unit. Ordinal: ranks of the ratings are those of the whole sample in every resample.
    """
    parts, pairable = _parts(ratings, level)
    if not len(parts):
        return Estimate(value=None, n=0)
    belongs = np.asarray(items)[pairable] if items is not None else np.arange(len(parts))
    labels, place = np.unique(belongs, return_inverse=True)
    sums = np.zeros((len(labels), parts.shape[1]))
    np.add.at(sums, place, parts)
    value = _alpha(sums.sum(axis=0, keepdims=True), level)[0, 0]
    if len(labels) < MIN_ITEMS:
        return estimate(value, None, None, len(labels))
    draws = _alpha(Resamples(len(labels), resamples, seed).sums(sums), level)
    low, high = bounds(draws, len(labels))
    return estimate(value, low[0], high[0], len(labels))


def _parts(ratings: ArrayLike, level: Level) -> tuple[Floats, NDArray[np.int64]]:
    """The sums that alpha is made of, of each unit with two ratings or more; and which units those are.

    Columns: disagreement within the unit, number of ratings, and for the expected disagreement their sum and sum of
    squares, or (nominal) the count of each value.
    """
    data = np.asarray(ratings, dtype=np.float64)
    data = data.reshape(len(data), data.size // max(len(data), 1))
    there = np.isfinite(data)
    pairable = np.flatnonzero(there.sum(axis=1) >= 2)
    data, there = data[pairable], there[pairable]
    number = there.sum(axis=1).astype(np.float64)
    if not len(data):
        return np.zeros((0, 4)), pairable
    values, codes, counts = np.unique(data[there], return_inverse=True, return_counts=True)
    if level == "nominal":
        unit = np.nonzero(there)[0]
        table = np.bincount(unit * len(values) + codes, minlength=len(data) * len(values))
        table = table.reshape(len(data), len(values)).astype(np.float64)
        within = (number**2 - (table**2).sum(axis=1)) / (number - 1)
        return np.column_stack([within, number, table]), pairable
    position = np.cumsum(counts) - counts / 2 if level == "ordinal" else values
    # Centred and scaled: alpha does not change, and the sums of squares keep their digits.
    position = position - (position * counts).sum() / counts.sum()
    position = position / max(float(np.abs(position).max()), np.finfo(np.float64).tiny)
    placed = np.zeros(data.shape)
    placed[there] = position[codes]
    total, squares = placed.sum(axis=1), (placed**2).sum(axis=1)
    own = np.where(there, placed - (total / number)[:, None], 0.0)
    within = 2 * number * (own**2).sum(axis=1) / (number - 1)
    return np.column_stack([within, number, total, squares]), pairable


def _alpha(sums: Floats, level: Level) -> Floats:
    """sums (k, columns of `_parts`) -> (k, 1), NaN where all ratings are equal."""
    within, number = sums[:, :1], sums[:, 1:2]
    if level == "nominal":
        between = number**2 - (sums[:, 2:] ** 2).sum(axis=1, keepdims=True)
    else:
        between = 2 * (number * sums[:, 3:4] - sums[:, 2:3] ** 2)
        between = np.where(between > 1e-12 * number**2, between, 0.0)
    return 1 - divide(within * (number - 1), between)
