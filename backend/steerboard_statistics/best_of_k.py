"""Best of k from one sampling of n answers: the whole curve without bias, and how far it can be from the sampler."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def rank_weights(n: int, k: int) -> Floats:
    """(n,): how probably the i-th of n values in rising order is the largest of k drawn without replacement.

    C(i - 1, k - 1) / C(n, k), i from 1: the order statistic's weights, which make a U-statistic, and so an estimate
    without bias of the best of k draws.
    """
    subsets = math.comb(n, k)
    return np.array([math.comb(i, k - 1) / subsets for i in range(n)])


@lru_cache(maxsize=64)
def _weights(n: int, most: int) -> Floats:
    """(most, n): `rank_weights` of k = 1 to `most`."""
    return np.stack([rank_weights(n, k) for k in range(1, most + 1)])


def best_of_k(scores: ArrayLike, values: ArrayLike, most: int) -> Floats:
    """Expected value of the answer with the best score among k, for k = 1 to `most`, of each group.

    `scores` (groups, n) choose, `values` (groups, n) are reported, such as the same scores, another reward or a length:
    (groups, most). Answers of equal score are equally likely to be chosen. `most` is at most n.
    """
    by, of = np.asarray(scores, dtype=np.float64), np.asarray(values, dtype=np.float64)
    order = np.argsort(by, axis=1, kind="stable")
    ranked = np.take_along_axis(by, order, axis=1)
    ordered = np.take_along_axis(of, order, axis=1)
    for group in np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=1)):
        _, block, size = np.unique(ranked[group], return_inverse=True, return_counts=True)
        ordered[group] = (np.bincount(block, weights=ordered[group]) / size)[block]
    curve: Floats = ordered @ _weights(by.shape[1], most).T
    return curve


def kl_bound(k: int) -> float:
    """ln k - (k - 1) / k, in nats: the KL divergence of best-of-k from its sampler is at most this (arXiv 2401.01879,
    Theorem 3.1)."""
    return math.log(k) - (k - 1) / k
