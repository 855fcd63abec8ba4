"""Estimates of KL(pi || reference) from single tokens that pi wrote, by John Schulman's "Approximating KL divergence"
(2020): with the log-ratio x = log pi - log reference,

    k1 = x                     unbiased, may be negative
    k2 = x^2 / 2               biased; its gradient is that of the KL when the tokens are pi's own
    k3 = exp(-x) - 1 + x       unbiased, never negative; its gradient is not that of the KL
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Estimator = Literal["k1", "k2", "k3"]

# Beyond it the ratio is not a number that anything should be multiplied by.
LOG_RATIO_LIMIT = 20.0


def clamped(log_ratio: Tensor, limit: float | None = LOG_RATIO_LIMIT) -> Tensor:
    """The log-ratio, of any shape, within +-limit, before any exponential. What is reported should be of the unclamped
    one."""
    return log_ratio if limit is None else log_ratio.clamp(-limit, limit)


def estimate(
    log_probs: Tensor, reference: Tensor, estimator: Estimator = "k1", limit: float | None = LOG_RATIO_LIMIT
) -> Tensor:
    """The KL estimate of each token (N,), from its log-probs under pi and under the reference. `limit`: bound of the
    log-ratio, None for no bound, as in figures that are reported."""
    x = clamped(log_probs - reference, limit)
    if estimator == "k1":
        return x
    return x.square() / 2 if estimator == "k2" else (-x).expm1() + x


def penalty(log_probs: Tensor, reference: Tensor, estimator: Estimator) -> Tensor:
    """(N,) of each token, to be added to a loss. The tokens must be pi's own.

    Raises ValueError for k1: its gradient is that of log pi, which is 0 on average whatever the reference is.
    """
    if estimator == "k1":
        raise ValueError("k1 in a loss has no effect on average: use it in the reward, or k2 in the loss")
    return estimate(log_probs, reference, estimator)
