"""Advantages of single tokens by a critic, and what the critic learns. Numbers without gradient, in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steerboard_workers.alignment.policy_gradient.advantages import Floats, Mask, gae, padded, whiten
from steerboard_workers.alignment.policy_gradient.kl import LOG_RATIO_LIMIT


@dataclass(frozen=True)
class Judged:
    """The arrays of each answer of one sampling, (tokens,): whitened advantages, and the returns that the critic
    learns; NaN where the answer has no reward. `explained_variance`: 1 - Var(returns - values) / Var(returns), over all
    tokens; 1 for a perfect critic, 0 for one that knows the mean only."""

    advantages: list[Floats]
    returns: list[Floats]
    explained_variance: float


def token_rewards(rewards: Sequence[Floats], log_ratios: Sequence[Floats], kl_weight: float) -> list[Floats]:
    """The rewards of each answer's tokens, (tokens,): -kl_weight (log pi - log reference) at each token, which is the
    estimate k1 of the KL, and what the token itself was worth; of an answer of one turn that is the last one's alone.
    rewards: of each answer (tokens,). Log-ratios are bounded as in `kl.clamped`."""
    per_token = []
    for reward, log_ratio in zip(rewards, log_ratios, strict=True):
        given = -kl_weight * log_ratio.clip(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        given += reward
        per_token.append(given)
    return per_token


def judged(rewards: Sequence[Floats], values: Sequence[Floats], gamma: float, lambda_: float) -> Judged:
    """Generalised advantage estimation. rewards and values: of each answer (tokens,). Returns come before whitening,
    which is over all tokens of the sampling."""
    given, mask = padded(rewards)
    expected, _ = padded(values)
    advantages, returns = gae(given, expected, mask, gamma, lambda_)
    known = mask & ~np.isnan(advantages)
    spread = float(returns[known].var()) if known.any() else 0.0
    return Judged(
        _rows(whiten(advantages, mask), mask),
        _rows(returns, mask),
        1 - float((returns - expected)[known].var()) / spread if spread > 0 else 0.0,
    )


def _rows(values: Floats, mask: Mask) -> list[Floats]:
    return [row[inside] for row, inside in zip(values, mask, strict=True)]
