"""The policy that sampled answers is not quite the one that learns them: an engine rounds differently, or its weights
are older. How far the two are apart, and the weights that correct for it.

A ratio is pi / pi_sampler, with log pi as training computes it before the update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.online.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.policy_gradient.kl import LOG_RATIO_LIMIT
from steerboard_workers.alignment.rollouts import Rollout

Floats = NDArray[np.float64]
Weights = NDArray[np.float32]


class SamplerDiffers(SteerboardError):
    """What samples is not the policy in training."""

    code = "sampler_differs"
    status = 422
    title = "The engine's policy differs from the trained one"


def distance_from_sampler(mean: float, largest: float, bound: float) -> dict[str, float]:
    """How far log-probs of the sampler are from those that training computes of the same tokens, in nats. Raises
    `SamplerDiffers` where the mean is above the bound."""
    if mean > bound:
        raise SamplerDiffers(
            f"its log-probs of the sampled tokens are {mean:.3g} nats from the trained model's on average, and "
            f"max_sampler_difference is {bound:g}",
            hint="Sample with engine transformers or precision fp32, lower lr where staleness lets the sampler fall "
            "behind, or raise max_sampler_difference.",
        )
    return {"sampler_difference": mean, "sampler_difference_max": largest}


@dataclass(frozen=True)
class Distance:
    """Figures of the sampled tokens: mean and largest |log ratio|; `kl`, the mean of ratio - 1 - log ratio, which is
    the estimate k3 of KL(sampler || policy) in nats a token; mean and largest ratio, bounded as in `kl.clamped`."""

    mean: float
    largest: float
    kl: float
    ratio: float
    largest_ratio: float

    def metrics(self, bound: float) -> dict[str, float]:
        """Raises `SamplerDiffers` where the mean is above the bound."""
        near = distance_from_sampler(self.mean, self.largest, bound)
        return {
            **near,
            "sampler_kl": self.kl,
            "sampler_ratio": self.ratio,
            "sampler_ratio_max": self.largest_ratio,
        }


def sampler_metrics(rollouts: Sequence[Rollout], trained: Sequence[Weights], bound: float) -> dict[str, float]:
    """`Distance.metrics`; and -log pi a token, which is the policy's entropy on average. trained: log pi of each
    answer's tokens (tokens,), in nats. Raises `SamplerDiffers`."""
    apart = np.concatenate(_log_ratios(rollouts, trained))
    ratios = np.exp(apart.clip(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT))
    distances = np.abs(apart)
    distance = Distance(
        float(distances.mean()),
        float(distances.max()),
        float((ratios - 1 - apart).mean()),
        float(ratios.mean()),
        float(ratios.max()),
    )
    return {**distance.metrics(bound), "entropy": -float(np.concatenate(trained).mean(dtype=np.float64))}


@dataclass(frozen=True)
class Correction:
    """The weights of each answer's tokens (tokens,): 0 where the answer is masked. truncated: share of the tokens, or
    with weights of whole answers of these, whose weight was above the cap. masked: share of the answers."""

    weights: list[Weights]
    truncated: float | None
    masked: float | None

    def metrics(self) -> Mapping[str, float]:
        figures = {"sampler_truncated": self.truncated, "sampler_masked": self.masked}
        known = {name: value for name, value in figures.items() if value is not None}
        return {"sampler_weight": float(np.concatenate(self.weights).mean(dtype=np.float64)), **known}


def correction(rollouts: Sequence[Rollout], trained: Sequence[Weights], config: PolicyGradientConfig) -> Correction:
    """Truncated importance weights of tokens, or of whole answers by the product of their ratios; and masks of answers
    whose ratios leave a band, in their geometric mean or at a single token. A masked answer counts in what the loss is
    divided by: its weight is 0, as in masked importance sampling, and the others' do not grow."""
    of_answers = _log_ratios(rollouts, trained)
    whole = config.sampler_weight_level == "sequence"
    logs = [np.full(len(apart), apart.sum()) if whole else apart for apart in of_answers]
    truncated = None
    if config.sampler_weight_cap is None:
        logs = [np.zeros(len(apart)) for apart in logs]
    else:
        cap = float(np.log(config.sampler_weight_cap))
        above = [apart[:1] > cap if whole else apart > cap for apart in logs]
        truncated = float(np.concatenate(above).mean())
        logs = [np.minimum(apart, cap) for apart in logs]
    kept = np.array([not _outside(apart, config) for apart in of_answers])
    weights = [np.exp(apart).astype(np.float32) * np.float32(keep) for apart, keep in zip(logs, kept, strict=True)]
    return Correction(weights, truncated, float(1 - kept.mean()) if config.masks_answers else None)


def _outside(log_ratios: Floats, config: PolicyGradientConfig) -> bool:
    bands = (
        (log_ratios.mean(), log_ratios.mean(), config.sampler_mean_low, config.sampler_mean_high),
        (log_ratios.min(), log_ratios.max(), config.sampler_token_low, config.sampler_token_high),
    )
    return any(
        (low is not None and smallest < np.log(low)) or (high is not None and largest > np.log(high))
        for smallest, largest, low, high in bands
    )


def _log_ratios(rollouts: Sequence[Rollout], trained: Sequence[Weights]) -> list[Floats]:
    return [ours.astype(np.float64) - rollout.log_probs for rollout, ours in zip(rollouts, trained, strict=True)]
