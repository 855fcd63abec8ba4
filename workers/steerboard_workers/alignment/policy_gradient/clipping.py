"""Losses of single tokens (N,) by their ratio to the policy that sampled them, and what a bound takes of each."""

from __future__ import annotations

import torch
from torch import Tensor

# On both sides of 1: arXiv 1707.06347, Sec. 6.1.
CLIP = 0.2


def clipped_surrogate(
    ratio: Tensor, advantages: Tensor, low: float = CLIP, high: float = CLIP, dual: float | None = None
) -> Tensor:
    """-min(rho A, clip(rho, 1 - low, 1 + high) A) of each token (N,): Eq. 7 of arXiv 1707.06347, for `low` != `high`
    Eq. 10 of arXiv 2503.14476. `dual` = c > 1: where A < 0 at most -c A, dual clip of arXiv 1912.09729."""
    loss = -torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    if dual is None:
        return loss
    if dual <= 1:
        raise ValueError(f"the bound of dual clip is {dual}, and must be above 1")
    return torch.where(advantages < 0, torch.minimum(loss, -dual * advantages), loss)


def clipped_tokens(
    ratio: Tensor, advantages: Tensor, low: float = CLIP, high: float = CLIP, dual: float | None = None
) -> Tensor:
    """(N,) bool: tokens whose gradient the clip, or with `dual` the dual clip, takes away. Their share is the clip
    share."""
    beyond = ratio < 1 - low
    if dual is not None:
        # The surrogate there is max(rho, 1 - low), which the bound cuts.
        beyond = beyond | (ratio > dual)
    return ((ratio > 1 + high) & (advantages > 0)) | (beyond & (advantages < 0))


def weighted_log_probs(
    ratio: Tensor, advantages: Tensor, log_probs: Tensor, low: float = 1.0, high: float = float("inf")
) -> Tensor:
    """-sg(clip(rho, 1 - low, 1 + high)) A log pi of each token (N,): Eq. 4 and 5 of arXiv 2506.13585. The weight is
    bounded and has no gradient, so that no token loses its own."""
    return -ratio.detach().clamp(1 - low, 1 + high) * advantages * log_probs


def bounded_weights(ratio: Tensor, low: float = 1.0, high: float = float("inf")) -> Tensor:
    """(N,) bool: tokens whose weight the clip changes."""
    return (ratio < 1 - low) | (ratio > 1 + high)


def gated(ratio: Tensor, advantages: Tensor, positive: float, negative: float) -> Tensor:
    """-(4 / tau) sigma(tau (rho - 1)) A of each token (N,): arXiv 2511.20347. tau is `positive` where
    A > 0, else `negative`; the larger, the sooner a ratio apart from 1 counts less. The gradient at ratio 1 is that of
    rho A."""
    tau = _temperatures(advantages, positive, negative)
    return -4 / tau * (tau * (ratio - 1)).sigmoid() * advantages


def gate_takes(ratio: Tensor, advantages: Tensor, positive: float, negative: float) -> Tensor:
    """(N,) the share of each token's gradient that the gate takes: 1 - 4 p (1 - p), p = sigma(tau (rho - 1))."""
    p = (_temperatures(advantages, positive, negative) * (ratio - 1)).sigmoid()
    return 1 - 4 * p * (1 - p)


def _temperatures(advantages: Tensor, positive: float, negative: float) -> Tensor:
    return torch.where(advantages > 0, positive, negative).to(advantages.dtype)
