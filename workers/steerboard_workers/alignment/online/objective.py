"""The clipped policy gradient on tokens whose advantages are known, with the KL from a reference in the loss or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.online.policy_gradient import PolicyGradientConfig
from steerboard_contracts.specs.method import Reads
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.mismatch import Distance
from steerboard_workers.alignment.policy_gradient import clipping, kl, losses

# Names of `Example.token_values`. Without OLD the update is the first that reads the policy, and gets the SAMPLED
# log-probs to compare with.
OLD = "old_log_probs"
SAMPLED = "sampled_log_probs"
ADVANTAGES = "advantages"
REFERENCE = "reference_log_probs"
SAMPLER_WEIGHTS = "sampler_weights"

# No one's rounding: a ratio so far from 1 before the first update is of another model. In float32 they are within 1e-5.
LARGEST_ERROR = 0.01
LARGEST_ERROR_BF16 = 0.5


class RatioDiffers(SteerboardError):
    """The policy gives, before the first update, its own answers other probabilities than it had a moment ago."""

    code = "ratio_differs"
    status = 422
    title = "The policy's log-probs are wrong"


@dataclass
class Turn:
    """What the source of batches and the objective of one run both know. `first`: whether the batch is the first one
    since the answers were sampled, so that all its ratios are 1. `largest_error`: of these, by rounding. `values`: a
    and b of a critic's values a v + b, in the scale of the rewards that are learned."""

    first: bool = True
    largest_error: float = LARGEST_ERROR
    values: tuple[float, float] = (1.0, 0.0)


class PolicyGradientObjective:
    """`length`: tokens that the constant reducer divides by.

    `entropy_weight` adds the exact entropy of each token's distribution, which the module has to give.

    Its figures: the share of the tokens' gradients that the clip takes away (of weights: the share of tokens whose
    weight it bounds), `update_kl`, the estimate k3 of the KL a token
    of the policy from the one that sampled, and of the first update after sampling `ratio_error`, the largest
    |ratio - 1|, of which rounding is the only cause. An update that is the first to read the policy finds how far
    it is from the sampler and from the reference, too.
    """

    reads: Reads = "labels"
    measures: tuple[str, ...] = (
        *("loss_sum", "count", "labels", "clipped", "update_kl", "kl_loss", "ratio_error_max", "entropy"),
        *("answers", "log_ratio", "surprise", "apart", "apart_max", "sampler_kl", "sampler_ratio", "sampler_ratio_max"),
    )

    def __init__(self, config: PolicyGradientConfig, turn: Turn, length: int) -> None:
        self.config = config
        self.turn = turn
        self.length = length
        self._adds_kl = config.kl_in == "loss" and config.kl_weight > 0

    def count(self, examples: Sequence[Example]) -> float:
        return losses.reduced_count([n for e in examples for n in e.label_counts], self.config.reducer)

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        config, log_probs = self.config, output[0]
        given = batch.token_values
        old, advantages = given.get(OLD, log_probs.detach()), given[ADVANTAGES]
        if config.ratio == "sequence":
            ratios = losses.sequence_ratios(log_probs, old, batch.label_counts)
        else:
            ratios = losses.ratios(log_probs, old)
        of_tokens, taken = self._clipped(ratios, advantages, log_probs)
        penalty = torch.zeros((), device=log_probs.device)
        if self._adds_kl:
            of_kl = kl.penalty(log_probs, given[REFERENCE], config.kl_form)
            of_tokens = of_tokens + config.kl_weight * of_kl
            penalty = of_kl.detach().double().sum()
        if config.corrects_sampler:
            # The KL, too, is an expectation over answers of the policy.
            of_tokens = of_tokens * given[SAMPLER_WEIGHTS]
        entropy = torch.zeros((), device=log_probs.device)
        if config.entropy_weight and len(output) > 2:
            of_tokens = of_tokens - config.entropy_weight * output[2]
            entropy = output[2].detach().double().sum()
        loss = losses.reduced(of_tokens, batch.label_counts, config.reducer, self.length)
        with torch.no_grad():
            labels = torch.tensor(len(log_probs), dtype=torch.float64, device=loss.device)
            sequences = torch.tensor(len(batch.label_counts), dtype=torch.float64, device=loss.device)
            sums = torch.stack(
                [
                    loss.double(),
                    labels if config.reducer == "token" else sequences,
                    labels,
                    taken.double().sum(),
                    # The answers are of the old policy, so it is KL(old || new).
                    kl.estimate(old.double(), log_probs.double(), "k3", limit=None).sum(),
                    penalty.double(),
                    (ratios.double() - 1).abs().max(),
                    entropy.double(),
                    *_unread(log_probs.double(), given, sequences),
                ]
            )
        return loss, sums

    def _clipped(self, ratios: Tensor, advantages: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """(losses, shares that the clip takes) of each token, both (N,)."""
        config = self.config
        low, high = config.clip_range
        if config.clip == "gate":
            temperatures = config.gate_positive, config.gate_negative
            taken = clipping.gate_takes(ratios.detach(), advantages, *temperatures)
            return clipping.gated(ratios, advantages, *temperatures), taken
        if config.clip == "weight":
            of_tokens = clipping.weighted_log_probs(ratios, advantages, log_probs, low, high)
            return of_tokens, clipping.bounded_weights(ratios.detach(), low, high)
        taken = clipping.clipped_tokens(ratios.detach(), advantages, low, high, config.dual_clip)
        return clipping.clipped_surrogate(ratios, advantages, low, high, config.dual_clip), taken

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Raises `RatioDiffers`."""
        labels = sums["labels"]
        metrics = {"loss": sums["loss_sum"] / sums["count"], "clip_share": sums["clipped"] / labels}
        metrics["update_kl"] = sums["update_kl"] / labels
        if self._adds_kl:
            metrics["kl_loss"] = sums["kl_loss"] / labels
        if self.config.entropy_weight:
            metrics["entropy"] = sums["entropy"] / labels
        if sums["answers"]:
            distance = Distance(
                sums["apart"] / labels,
                sums["apart_max"],
                sums["sampler_kl"] / labels,
                sums["sampler_ratio"] / labels,
                sums["sampler_ratio_max"],
            )
            metrics |= distance.metrics(self.config.max_sampler_difference)
            metrics = {"entropy": sums["surprise"] / labels, **metrics}
            if self._adds_kl:
                metrics["kl"] = sums["log_ratio"] / sums["answers"]
        if self.turn.first:
            error = sums["ratio_error_max"]
            if error > self.turn.largest_error:
                raise RatioDiffers(
                    f"before the first update, a token of an answer is {1 + error:.3g} times as likely as when it was "
                    "sampled, or as much less",
                    hint="Train with precision fp32 and batching padded, and report it.",
                )
            metrics["ratio_error"] = error
        return metrics

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        return {}


def _unread(log_probs: Tensor, given: Mapping[str, Tensor], sequences: Tensor) -> list[Tensor]:
    """The figures of an update that is the first to read the policy: answers, sums over tokens of log pi - log pi_ref
    and of -log pi, sum and largest of the distances from the sampler's log-probs, sums of `Distance.kl` and of the
    ratios, and the largest ratio. Zeros elsewhere."""
    nothing = torch.zeros((), dtype=torch.float64, device=log_probs.device)
    if SAMPLED not in given:
        return [nothing] * 8
    apart = log_probs - given[SAMPLED]
    ratios = kl.clamped(apart).exp()
    log_ratio = (log_probs - given[REFERENCE]).sum() if REFERENCE in given else nothing
    distances = [apart.abs().sum(), apart.abs().max(), (ratios - 1 - apart).sum(), ratios.sum(), ratios.max()]
    return [sequences, log_ratio, -log_probs.sum(), *distances]
