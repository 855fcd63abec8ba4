"""Two models on the same items: the difference of their accuracies, with an interval and McNemar's test.

An item on which both are right, or both wrong, is no evidence for either: only the others are tested.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from steerboard_statistics.bootstrap import Floats
from steerboard_statistics.paired import wilcoxon_p
from steerboard_statistics.proportions import win_rate_interval

# Fewer than this many items that tell two models apart have no sum that is normally distributed.
_FEW = 10


@dataclass(frozen=True, slots=True)
class PairedAccuracy:
    """`a`, `b`: accuracies from 0 to 1; `difference`: a - b with its 95% interval; `only_a`, `only_b`: items on which
    one does better."""

    n: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    only_a: int
    only_b: int
    p: float | None


@dataclass(frozen=True, slots=True)
class WeightedAccuracy:
    """The `PairedAccuracy` of a weighted mean over groups of items."""

    n: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float | None


def paired_accuracy(a: ArrayLike, b: ArrayLike) -> PairedAccuracy:
    """a, b (items,): 1 where right, 0 where wrong, or a share between them.

    The interval is Tango's score interval for matched proportions; a share counts as that part of a right answer, with
    which the interval is on the wide side. The test is McNemar's in its exact form, the sign test over the items that
    only one is right on; of shares that differ by unequal amounts it is Wilcoxon's. Raises `ValueError` without items.
    """
    ours, others = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not ours.size or ours.shape != others.shape:
        raise ValueError("two models are compared on the same items, of which there is at least one")
    differences = ours - others
    only_a, only_b = int((differences > 0).sum()), int((differences < 0).sum())
    wins, losses = float(differences.clip(0).sum()), float((-differences).clip(0).sum())
    interval = win_rate_interval(wins, len(differences) - wins - losses, losses)
    assert interval.low is not None
    assert interval.high is not None
    return PairedAccuracy(
        n=len(differences),
        a=float(ours.mean()),
        b=float(others.mean()),
        difference=float(differences.mean()),
        low=2 * interval.low - 1,
        high=2 * interval.high - 1,
        only_a=only_a,
        only_b=only_b,
        p=_p(differences, only_a, only_b),
    )


def _p(differences: Floats, only_a: int, only_b: int) -> float | None:
    sizes = np.abs(differences[differences != 0])
    if sizes.size and not np.allclose(sizes, sizes[0]):
        return wilcoxon_p(differences)
    if not sizes.size:
        return 1.0
    return float(scipy.stats.binomtest(only_a, only_a + only_b, 0.5).pvalue)


def weighted_accuracy(parts: Sequence[tuple[float, PairedAccuracy]]) -> WeightedAccuracy:
    """The mean of groups with their weights, which may have any sum.

    The interval recovers each group's variance from its own ends (Zou, Huang and Zhang, Computational Statistics & Data
    Analysis 53, 2009): low = d - sqrt(sum (w (d_g - low_g))^2). The test takes each item that only one is
    right on as a coin's throw of its group's weight a head, whose sum is normal; None where these are too few, or where
    one group outweighs the others so that they are in effect. Raises `ValueError` without groups.
    """
    total = math.fsum(weight for weight, _ in parts)
    if total <= 0:
        raise ValueError("there is no group with a weight")
    shares = [(weight / total, accuracy) for weight, accuracy in parts]
    difference = math.fsum(share * accuracy.difference for share, accuracy in shares)
    below = math.hypot(*(share * (accuracy.difference - accuracy.low) for share, accuracy in shares))
    above = math.hypot(*(share * (accuracy.high - accuracy.difference) for share, accuracy in shares))
    return WeightedAccuracy(
        n=sum(accuracy.n for _, accuracy in parts),
        a=math.fsum(share * accuracy.a for share, accuracy in shares),
        b=math.fsum(share * accuracy.b for share, accuracy in shares),
        difference=difference,
        low=max(difference - below, -1.0),
        high=min(difference + above, 1.0),
        p=_weighted_p([(share / accuracy.n, accuracy) for share, accuracy in shares]),
    )


def _weighted_p(parts: Sequence[tuple[float, PairedAccuracy]]) -> float | None:
    """parts: (weight of one item, its group)."""
    coins = [(each, accuracy.only_a + accuracy.only_b) for each, accuracy in parts]
    variance = math.fsum(each**2 * tosses for each, tosses in coins)
    fourth = math.fsum(each**4 * tosses for each, tosses in coins)
    if not variance:
        return 1.0
    if variance**2 / fourth < _FEW:
        return None
    ahead = math.fsum(each * (accuracy.only_a - accuracy.only_b) for each, accuracy in parts)
    return math.erfc(abs(ahead) / math.sqrt(2 * variance))
