"""The losses as pure functions. Sums over tokens or pairs; the trainer divides by the count of the global batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F


def weighted_nll(log_probs: Tensor, sequence: Tensor, weights: Tensor) -> Tensor:
    """-sum_s w_s sum_{i in s} log pi(x_i | p, x_<i): Eq. 1 of arXiv 2308.12050 (w = 1), Eq. 5 (w = exp(R / beta)).

    log_probs (N,), sequence (N,) the sequence of each token, weights (S,). Returns a scalar sum.
    """
    return -(log_probs * weights[sequence]).sum()


def bradley_terry(chosen: Tensor, rejected: Tensor, margin: Tensor | None = None, centre: float = 0.0) -> Tensor:
    """sum -log sigma(r_w - r_l - m) + lambda (r_w + r_l)^2: Eq. 2 of arXiv 2308.12050. All (pairs,), in float32."""
    difference = chosen - rejected if margin is None else chosen - rejected - margin
    loss = -F.logsigmoid(difference)
    if centre:
        loss = loss + centre * (chosen + rejected).square()
    return loss.sum()


def rwr_weight(z: float, beta: float, max_weight: float | None) -> float:
    """exp(z / beta) of Eq. 5, at most `max_weight`. Large z never overflows."""
    limit = math.inf if max_weight is None else max_weight
    exponent = min(z / beta, 700.0)
    return min(math.exp(exponent), limit)


def effective_sample_size(weights: Sequence[float]) -> float:
    """(sum w)^2 / sum w^2 as a fraction of n: 1 when all weights are equal."""
    w = torch.tensor(weights, dtype=torch.float64)
    return float(w.sum().square() / (w.square().sum() * len(w)))


def correlation(n: float, x: float, y: float, xx: float, yy: float, xy: float) -> float:
    """Pearson's r from sums; 0 where a variable does not vary."""
    spread = (n * xx - x * x) * (n * yy - y * y)
    return (n * xy - x * y) / math.sqrt(spread) if spread > 1e-12 * max(1.0, abs(n * n * xx * yy)) else 0.0
