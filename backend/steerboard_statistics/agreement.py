"""Do annotators, or sources such as people, a judge and a reward model, say the same of the same items?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.bootstrap import (
    MIN_ITEMS,
    RESAMPLES,
    Floats,
    Resamples,
    bounds,
    divide,
    estimate,
    percentiles,
)
from steerboard_statistics.comparison import pair_differences
from steerboard_statistics.correlation import kendall_rows, rank_correlation, spearman_rows
from steerboard_statistics.krippendorff import alpha_interval, krippendorff_alpha
from steerboard_statistics.proportions import proportion_interval
from steerboard_statistics.ranks import without_noise

__all__ = [
    "SourceAgreement",
    "alpha_interval",
    "cohen_kappa",
    "item_agreement",
    "kappa_interval",
    "krippendorff_alpha",
    "pair_signs",
    "rank_correlation",
    "source_agreement",
]


class SourceAgreement(NamedTuple):
    """`spearman`, `kendall` (tau-b): over entrants' mean scores; `item`: over the entrant pairs of items."""

    spearman: Estimate
    kendall: Estimate
    item: Estimate
    entrants: int
    items: int


def cohen_kappa(a: ArrayLike, b: ArrayLike) -> float | None:
    """Cohen's kappa of two annotators' labels a, b (n,): numbers, a NaN drops its pair.

    kappa = (po - pe) / (1 - pe). None without labels, and when both gave one and the same label only. scikit-learn's
    takes 90 MB and more than a second to import.
    """
    pairs = np.column_stack([np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)])
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    labels, codes = np.unique(pairs, return_inverse=True)
    if len(labels) < 2:
        return None
    first, second = codes.reshape(pairs.shape).T
    expected = np.bincount(first, minlength=len(labels)) @ np.bincount(second, minlength=len(labels)) / len(pairs) ** 2
    return float(((first == second).mean() - expected) / (1 - expected))


def kappa_interval(a: ArrayLike, b: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Cohen's kappa of two sources over the entrant pairs of items, with its bootstrap interval over items.

    a, b: signs (items, pairs) as from `pair_signs`, NaN where a source has no opinion. A tie is a label of its own. `n`
    counts items that both cover. No value where both gave one and the same label only.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    labels = (-1.0, 0.0, 1.0)
    # How often each item has each of the nine pairs of labels.
    cells = np.stack([(both & (x == first) & (y == two)).sum(axis=1) for first in labels for two in labels], axis=1)
    table = cells[cells.any(axis=1)].astype(np.float64)
    items = len(table)
    if not items:
        return Estimate(value=None, n=0)
    value = _kappa(table.sum(axis=0, keepdims=True))[0]
    if items < MIN_ITEMS:
        return estimate(value, None, None, items)
    low, high = bounds(_kappa(Resamples(items, resamples, seed).sums(table))[:, None], items)
    return estimate(value, low[0], high[0], items)


def pair_signs(scores: ArrayLike) -> Floats:
    """Which of every two entrants is better: scores (items, entrants) -> (items, pairs) of 1, 0 (tie), -1 or NaN.

    Pairs in the order of itertools.combinations over the entrants.
    """
    return np.sign(pair_differences(without_noise(scores)))


def item_agreement(a: ArrayLike, b: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Share of entrant pairs of items on which two sources say the same; a tie of one of them only counts 1/2.

    a, b: signs (items, pairs) as from `pair_signs`, rows being the same items; NaN where a source has no opinion. `n`
    counts items that both cover; the interval is over items.
    """
    agreed, number = _agreed(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    spoken = number > 0
    table = np.column_stack([agreed, number])[spoken]
    value = table[:, 0].sum() / table[:, 1].sum() if len(table) else None
    if len(table) < MIN_ITEMS:
        return estimate(value, None, None, len(table))
    if len(set(divide(table[:, 0], table[:, 1]).tolist())) == 1:
        # Items that all agree alike resample to themselves.
        return proportion_interval(table[:, 0].sum() / table[:, 1].sum() * len(table), len(table))
    drawn = Resamples(len(table), resamples, seed).sums(table)
    low, high = bounds(divide(drawn[:, :1], drawn[:, 1:]), len(table))
    return estimate(value, low[0], high[0], len(table))


def source_agreement(
    a: ArrayLike,
    b: ArrayLike,
    *,
    a_signs: ArrayLike | None = None,
    b_signs: ArrayLike | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> SourceAgreement:
    """Two sources on the same items: a, b scores (items, entrants) of each, NaN for what it did not see.

    Means are over the items and entrants that both scored; intervals by drawing items. A source of pair verdicts gives
    its win shares as scores and its own signs (items, pairs). Correlations need two entrants, and three to say much.
    """
    x, y = without_noise(a), without_noise(b)
    signs = [pair_signs(side) if own is None else own for side, own in ((x, a_signs), (y, b_signs))]
    item = item_agreement(*signs, seed=seed, resamples=resamples)
    shared = np.isfinite(x) & np.isfinite(y)
    rows, columns = shared.any(axis=1), shared.any(axis=0)
    x, y = np.where(shared, x, np.nan)[rows][:, columns], np.where(shared, y, np.nan)[rows][:, columns]
    items, entrants = x.shape
    if not x.size:
        nothing = Estimate(value=None, n=0)
        return SourceAgreement(nothing, nothing, item, 0, 0)
    values = rank_correlation(np.nanmean(x, axis=0), np.nanmean(y, axis=0))
    ends: list[tuple[float | None, float | None]] = [(None, None), (None, None)]
    if items >= MIN_ITEMS:
        drawn = Resamples(items, resamples, seed)
        means = np.hstack([without_noise(drawn.means(x)), without_noise(drawn.means(y))])
        means = means[np.isfinite(means).all(axis=1)]
        left, right = means[:, :entrants], means[:, entrants:]
        for place, rows_of in enumerate((spearman_rows, kendall_rows)):
            # An order that no resample changes is one; means of equal items have no width, orders of unequal ones may.
            low, high = percentiles(rows_of(left, right)[:, None], items)
            ends[place] = (low[0], high[0])
    rho, tau = (estimate(value, low, high, items) for value, (low, high) in zip(values, ends, strict=True))
    return SourceAgreement(rho, tau, item, entrants, items)


def _kappa(cells: Floats) -> Floats:
    """Counts (k, 9) of pairs of three labels -> (k,), NaN where chance explains all."""
    counts = cells.reshape(-1, 3, 3)
    total = counts.sum(axis=(1, 2))
    observed = divide(np.einsum("kii->k", counts), total)
    expected = divide((counts.sum(axis=2) * counts.sum(axis=1)).sum(axis=1), total**2)
    return divide(observed - expected, 1 - expected)


def _agreed(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Points of agreement and pairs that both cover, by item: (items, pairs) -> (items,) each."""
    both = np.isfinite(a) & np.isfinite(b)
    same, half = a == b, (a == 0) != (b == 0)
    return np.where(both, same + 0.5 * half, 0.0).sum(axis=1), both.sum(axis=1).astype(np.float64)
