"""The losses as pure functions. Sums over tokens or pairs; the trainer divides by the count of the global batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

# The bins of confidences in `calibration_error`.
BINS = 10


def weighted_nll(log_probs: Tensor, sequence: Tensor, weights: Tensor) -> Tensor:
    """-sum_s w_s sum_{i in s} log pi(x_i | p, x_<i): Eq. 1 of arXiv 2308.12050 (w = 1), Eq. 5 (w = exp(R / beta)).

    log_probs (N,), sequence (N,) the sequence of each token, weights (S,). Returns a scalar sum.
    """
    return -(log_probs * weights[sequence]).sum()


def sequence_sums(values: Tensor, counts: Tensor) -> Tensor:
    """Sums (S,) in float32 of consecutive stretches of values (N,), such as a micro-batch's log-probs by its
    `label_counts` (S,). The order of summation is fixed, on a GPU too."""
    sums: Tensor = torch.segment_reduce(values.float(), "sum", lengths=counts.long(), initial=0.0)
    return sums


def effective_sample_size(weights: Sequence[float]) -> float:
    """(sum w)^2 / sum w^2 as a fraction of n: 1 when all weights are equal."""
    w = torch.tensor(weights, dtype=torch.float64)
    return float(w.sum().square() / (w.square().sum() * len(w)))


def correlation(n: float, x: float, y: float, xx: float, yy: float, xy: float) -> float:
    """Pearson's r from sums; 0 where a variable does not vary."""
    spread = (n * xx - x * x) * (n * yy - y * y)
    return (n * xy - x * y) / math.sqrt(spread) if spread > 1e-12 * max(1.0, abs(n * n * xx * yy)) else 0.0


def calibration_error(of_truth: Sequence[float]) -> float:
    """Expected calibration error (Naeini, Cooper and Hauskrecht 2015) of choices between two things.

    of_truth: the probability given to the right one of two; the other one got the rest. A choice is as confident as its
    larger probability, which is between 1/2 and 1; in equal bins of these, |share of right choices - mean confidence|
    is averaged, weighted by the number of choices. One of 1/2 each is half right. 0 for no choices.
    """
    bins: list[list[float]] = [[] for _ in range(BINS)]
    for p in of_truth:
        bins[min(BINS - 1, int((max(p, 1 - p) - 0.5) * 2 * BINS))].append(p)
    off = 0.0
    for inside in bins:
        right = sum(1.0 if p > 0.5 else 0.5 * (p == 0.5) for p in inside)
        off += abs(right - sum(max(p, 1 - p) for p in inside))
    return off / len(of_truth) if of_truth else 0.0
