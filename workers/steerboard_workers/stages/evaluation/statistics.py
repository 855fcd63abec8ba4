"""The numbers of a report, in float64."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    mean: float
    low: float
    high: float


class Bootstrap:
    """Percentile bootstrap over prompts. All entrants share the same resamples of the same prompts."""

    def __init__(self, prompts: int, resamples: int, seed: int) -> None:
        random = np.random.Generator(np.random.PCG64(seed))
        # How often each prompt stands in each resample: (resamples, prompts), so a mean is one product.
        self._weights = random.multinomial(prompts, np.full(prompts, 1 / prompts), size=resamples) / prompts

    def interval(self, values: Sequence[float]) -> Interval:
        """Mean with its 95% interval; values (prompts,)."""
        data = np.asarray(values, dtype=np.float64)
        low, high = np.percentile(self._weights @ data, [2.5, 97.5])
        return Interval(float(data.mean()), float(low), float(high))


def spearman(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Rank correlation, ties at their mean rank. None for fewer than two points or a constant side."""
    if len(xs) < 2:
        return None
    a, b = _ranks(xs), _ranks(ys)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0 else None


def _ranks(values: Sequence[float]) -> Floats:
    data = np.asarray(values, dtype=np.float64)
    _, inverse, counts = np.unique(data, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = ((last - counts + 1 + last) / 2)[inverse]
    return ranks


def win_rate(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Share of prompts where ours is higher; an equal value counts 1/2."""
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    return float(((a > b) + 0.5 * (a == b)).mean())


def distinct_n(texts: Sequence[str], n: int) -> float:
    """Distinct n-grams of words over all n-grams, of all texts together (Li et al., 2016); 0 where there are none."""
    grams: list[tuple[str, ...]] = []
    for text in texts:
        words = re.findall(r"\w+", text.lower())
        grams += zip(*(words[i:] for i in range(n)), strict=False)
    return len(set(grams)) / len(grams) if grams else 0.0


def percentiles(values: Sequence[float], at: Sequence[float]) -> list[float]:
    return [float(p) for p in np.percentile(np.asarray(values, dtype=np.float64), list(at))]
