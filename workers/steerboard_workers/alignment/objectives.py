"""One objective a method: how a global batch is counted, what its loss is, what is measured beside it.

An objective sees examples (singles, pairs, or n responses to a prompt) and what a module's forward returned for a
micro-batch of them. Methods that need a reference's log-probs or rollouts carry them on the example and get them in
the micro-batch; nothing here or in the training loop assumes one response.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from steerboard_workers.alignment.batching import MicroBatch, Reads
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import (
    bradley_terry,
    correlation,
    effective_sample_size,
    weighted_nll,
)


class Objective(Protocol):
    """`measures` names the sums that `forward` returns; sums add up over micro-batches, ranks and evaluation."""

    reads: Reads
    measures: tuple[str, ...]

    def count(self, examples: Sequence[Example]) -> float:
        """What the loss of a global batch is divided by, known before any forward."""
        ...

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        """(loss, a scalar sum with gradient; measures (len(measures),) float64)."""
        ...

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Figures from the sums of a global batch or of an evaluation."""
        ...

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        """Figures of a global batch that need no model."""
        ...


class LanguageObjective:
    """SFT, MLE with filtering and Decision Transformer (all weights 1), and RWR.

    `self_normalised`: divide by sum of weight x tokens instead of tokens.
    """

    reads: Reads = "labels"
    measures: tuple[str, ...] = ("loss_sum", "nll", "correct", "labels", "count")

    def __init__(self, weighted: bool = False, self_normalised: bool = False, max_weight: float | None = None) -> None:
        self._weighted = weighted
        self._self_normalised = self_normalised
        self._max_weight = max_weight

    def count(self, examples: Sequence[Example]) -> float:
        if self._self_normalised:
            return math.fsum(e.weight * e.labels for e in examples)
        return float(sum(e.labels for e in examples))

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        log_probs, correct = output
        loss = weighted_nll(log_probs, batch.sequence, batch.weights)
        labels = torch.tensor(len(log_probs), dtype=torch.float64, device=loss.device)
        weight = batch.weights.double()[batch.sequence].sum() if self._self_normalised else labels
        sums = torch.stack(
            [loss.detach().double(), -log_probs.detach().double().sum(), correct.double().sum(), labels, weight]
        )
        return loss, sums

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        labels = sums["labels"]
        return {
            "loss": sums["loss_sum"] / sums["count"],
            "perplexity": math.exp(min(sums["nll"] / labels, 700.0)),
            "token_accuracy": sums["correct"] / labels,
        }

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        if not self._weighted:
            return {}
        weights = [e.weight for e in examples]
        clipped = 0 if self._max_weight is None else sum(w >= self._max_weight for w in weights)
        return {
            "effective_sample_size": effective_sample_size(weights),
            "max_weight": max(weights),
            "clipped": clipped / len(weights),
        }


class RewardObjective:
    """Bradley-Terry with an optional margin and centring term; responses stand as (chosen, rejected)."""

    reads: Reads = "ends"
    measures: tuple[str, ...] = (
        *("loss_sum", "pairs", "correct", "margin"),
        *("n", "reward", "length", "reward_2", "length_2", "reward_length"),
    )

    def __init__(self, centre: float = 0.0, use_margin: bool = False) -> None:
        self._centre = centre
        self._use_margin = use_margin

    def count(self, examples: Sequence[Example]) -> float:
        return float(len(examples))

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        chosen, rejected = output.view(-1, 2).unbind(1)
        loss = bradley_terry(chosen, rejected, batch.margins if self._use_margin else None, self._centre)
        with torch.no_grad():
            difference = (chosen - rejected).double()
            right = (difference > 0).double() + 0.5 * (difference == 0).double()
            reward, length = output.double(), batch.lengths.double()
            pairs = torch.tensor(len(chosen), dtype=torch.float64, device=loss.device)
            sums = torch.stack(
                [
                    *(loss.double(), pairs, right.sum(), difference.sum()),
                    *(2 * pairs, reward.sum(), length.sum()),
                    *(reward.square().sum(), length.square().sum(), (reward * length).sum()),
                ]
            )
        return loss, sums

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        pairs, n = sums["pairs"], sums["n"]
        mean = sums["reward"] / n
        return {
            "loss": sums["loss_sum"] / pairs,
            "pair_accuracy": sums["correct"] / pairs,
            "margin": sums["margin"] / pairs,
            "reward_mean": mean,
            "reward_std": math.sqrt(max(0.0, sums["reward_2"] / n - mean * mean)),
            "reward_length_correlation": correlation(
                n, sums["reward"], sums["length"], sums["reward_2"], sums["length_2"], sums["reward_length"]
            ),
        }

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        return {}
