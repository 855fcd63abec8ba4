"""Figures of a reward model: accuracy and calibration on held-out pairs, length, best of n, histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike

from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.rewards import Calibration, LengthCell, RewardBin
from steerboard_statistics.best_of_k import rank_weights
from steerboard_statistics.bootstrap import RESAMPLES, Floats, mean_interval
from steerboard_statistics.correlation import pearson
from steerboard_statistics.proportions import proportion_interval

CALIBRATION_BINS = 10
# With fewer samples of a prompt r is +-1 whatever they are.
MIN_SAMPLES = 3


def pair_accuracy(margins: ArrayLike) -> Estimate:
    """Share of pairs with chosen > rejected, with Wilson's interval; margins (pairs,) = chosen - rejected.

    Equal rewards are wrong, as in RewardBench; NaN is left out.
    """
    data = _finite(margins)
    return proportion_interval(int((data > 0).sum()), data.size)


def calibration(margins: ArrayLike, bins: int = CALIBRATION_BINS) -> Calibration | None:
    """Is the side that the model prefers the chosen one as often as it claims? margins (pairs,) = chosen - rejected.

    Bins are equal parts of 0.5 to 1 of the predicted probability sigma(|margin|), `mean` its average; the expected
    error is the mean over pairs of |accuracy - mean| of their bin (Guo et al., arXiv 1706.04599, Eq. 3). A margin of 0
    is right half of the time. None without pairs.
    """
    data = _finite(margins)
    if not data.size:
        return None
    predicted = scipy.special.expit(np.abs(data))
    right = np.where(data == 0, 0.5, data > 0)
    edges = np.linspace(0.5, 1, bins + 1)
    place = np.minimum(((predicted - 0.5) * 2 * bins).astype(np.int64), bins - 1)
    number = np.bincount(place, minlength=bins)
    means = np.bincount(place, weights=predicted, minlength=bins) / np.maximum(number, 1)
    accuracy = np.bincount(place, weights=right, minlength=bins) / np.maximum(number, 1)
    return Calibration(
        bins=[
            RewardBin(low=float(lo), high=float(hi), n=int(n), mean=float(m) if n else None)
            for lo, hi, n, m in zip(edges[:-1], edges[1:], number, means, strict=True)
        ],
        accuracy_by_bin=[float(share) if n else None for share, n in zip(accuracy, number, strict=True)],
        expected_error=float((number * np.abs(accuracy - means)).sum() / data.size),
    )


def length_correlation(rewards: ArrayLike, lengths: ArrayLike) -> list[tuple[float | None, int]]:
    """Pearson's r of reward and length over the samples of each prompt: both (prompts, samples) -> (r, n) by prompt.

    NaN is a sample that is missing. None where either is constant, or with fewer than three samples.
    """
    x, y = np.asarray(rewards, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    cells = []
    for left, right in zip(x, y, strict=True):
        n = int((np.isfinite(left) & np.isfinite(right)).sum())
        cells.append((pearson(left, right) if n >= MIN_SAMPLES else None, n))
    return cells


def length_cells(entrant: str, positions: Sequence[int], rewards: ArrayLike, lengths: ArrayLike) -> list[LengthCell]:
    """`length_correlation` as cells of the heat map; positions (prompts,)."""
    correlations = length_correlation(rewards, lengths)
    return [
        LengthCell(entrant=entrant, position=position, r=r, n=n)
        for position, (r, n) in zip(positions, correlations, strict=True)
    ]


def best_of_n(
    rewards: ArrayLike, sizes: Sequence[int] | None = None, *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[list[int], list[Estimate]]:
    """Mean over prompts of the expected best of n of a prompt's samples: rewards (prompts, samples), NaN is missing.

    Exact for drawing without replacement: of m samples in rising order the i-th is the best of n with probability
    C(i - 1, n - 1) / C(m, n). All sizes are over the same prompts, those with enough samples for the largest, so that
    the curve can't fall. Sizes default to the powers of two up to the median number of samples.
    """
    ordered = [np.sort(row[np.isfinite(row)]) for row in np.asarray(rewards, dtype=np.float64)]
    ordered = [row for row in ordered if row.size]
    if not ordered:
        return [], []
    if sizes is None:
        median = int(np.median([row.size for row in ordered]))
        sizes = [2**power for power in range(median.bit_length())]
    enough = [row for row in ordered if row.size >= max(sizes)]
    best = [[float(rank_weights(row.size, n) @ row) for row in enough] for n in sizes]
    return list(sizes), [mean_interval(values, seed=seed, resamples=resamples) for values in best]


def histograms(groups: Mapping[str, ArrayLike], bins: int = 20) -> dict[str, list[RewardBin]]:
    """Histograms on common edges, from the smallest value of all groups to the largest; NaN is left out.

    A bin holds its low edge and the last one its high edge too. Constant values share one bin; a group without values
    has bins with none, and no values at all have no bins.
    """
    data = {name: _finite(values) for name, values in groups.items()}
    every = np.concatenate([*data.values(), np.zeros(0)])
    if not every.size:
        return {name: [] for name in data}
    low, high = float(every.min()), float(every.max())
    edges = np.linspace(low, high, bins + 1) if high > low else np.array([low, high])
    return {name: _bins(values, edges) for name, values in data.items()}


def _bins(values: Floats, edges: Floats) -> list[RewardBin]:
    if len(edges) == 2:
        return [RewardBin(low=float(edges[0]), high=float(edges[1]), n=int(values.size))]
    counts, _ = np.histogram(values, edges)
    return [
        RewardBin(low=float(lo), high=float(hi), n=int(n))
        for lo, hi, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


def _finite(values: ArrayLike) -> Floats:
    data = np.asarray(values, dtype=np.float64).ravel()
    return data[np.isfinite(data)]
