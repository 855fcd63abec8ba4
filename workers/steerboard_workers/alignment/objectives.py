"""What an objective is: how a global batch is counted, its loss, and its other metrics. And the one that most
methods share, the likelihood of responses. Others are with their method.

An objective sees examples (singles, pairs, or n responses to a prompt) and what a module's forward returned for a
micro-batch of them. The log-probs of frozen models are on the example and in the micro-batch; nothing here or in the
training loop assumes one response.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steerboard_contracts.specs.method import Reads
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.divergence import Comparison
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import effective_sample_size, sequence_sums, weighted_nll
from steerboard_workers.alignment.rendering.render import Renderer


class Objective(Protocol):
    """`measures` names the sums that `forward` returns; sums add up over micro-batches, ranks and evaluation. Of those
    whose names end in `_max` the largest counts, 0 at least."""

    reads: Reads
    measures: tuple[str, ...]

    def count(self, examples: Sequence[Example]) -> float:
        """What the loss of a global batch is divided by, known before any forward."""
        ...

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        """(loss, a scalar sum with gradient; measures (len(measures),) float64). `output` is what the module gives, by
        name where several models are trained: "model", and others by their roles."""
        ...

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Figures from the sums of a global batch or of an evaluation."""
        ...

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        """Figures of a global batch that need no model."""
        ...


class Passes(Protocol):
    """Forward passes without gradient or dropout. The processes share the work, and each gets all results, which do not
    depend on their number. `model` is the name of a frozen one that is used for `forward`, or the role of one that is
    trained, too; None: the one that training is for.
    """

    def has(self, model: str) -> bool:
        """Whether there is such a model: an optional one may be missing."""
        ...

    def renderer(self, model: str) -> Renderer | None:
        """What makes the tokens of a frozen model with another tokenizer than the one that training is for. Its
        examples are of these tokens."""
        ...

    def closing_ids(self, model: str) -> list[int]:
        """What a frozen model that reads the same tokens, but ends of conversations, gets behind an answer that has
        ended."""
        ...

    def per_sequence(self, examples: Sequence[Example], model: str | None = None) -> list[NDArray[np.float32]]:
        """(responses,) of each example: sums of log pi over the labels of a sequence, or what a model that reads ends
        gives for it."""
        ...

    def per_label(
        self, examples: Sequence[Example], model: str | None = None, *, temperature: float | None = None
    ) -> list[list[NDArray[np.float32]]]:
        """Values (labels,) of each response of each example: log pi of every supervised token, or what a critic gives
        before it. `temperature`: of the softmax, where it is not the method's; of the model that training is for
        only."""
        ...

    def states(self, examples: Sequence[Example], model: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """(states (N, width) of a frozen model at all labels of the examples, what makes logits (n, V) of some of their
        rows), on the device. Of this process alone: its micro-batches are other ones than those of others."""
        ...


@runtime_checkable
class ComparingObjective(Objective, Protocol):
    """An objective whose forward pass compares whole distributions with a frozen model's. `comparison` is asked for
    each micro-batch, just before its forward pass."""

    def comparison(self, examples: Sequence[Example], passes: Passes) -> Comparison | None: ...


@runtime_checkable
class BatchObjective(Objective, Protocol):
    """An objective that needs something of the whole global batch before any of its micro-batches.

    `prepare` sees the examples of all processes and has to give each process the same; its result is every
    micro-batch's `prepared`. It is called for each optimiser step, and for an evaluation with all held-out examples.
    """

    def prepare(self, examples: Sequence[Example], passes: Passes) -> Mapping[str, Tensor]: ...


class LanguageObjective:
    """-sum w log pi(y | x): the weighted likelihood of responses, Eq. 1 and Eq. 5 of arXiv 2308.12050.

    `self_normalised`: divide by sum of weight x tokens instead of tokens. `floor`: nats a token; sequences that cost
    fewer have no gradient. Figures are of all sequences nevertheless, so that a floor changes what is learned and not
    what is reported.
    """

    reads: Reads = "labels"
    measures: tuple[str, ...] = ("loss_sum", "nll", "correct", "labels", "count")

    def __init__(
        self,
        weighted: bool = False,
        self_normalised: bool = False,
        max_weight: float | None = None,
        floor: float = 0.0,
    ) -> None:
        self._weighted = weighted
        self._floor = floor
        if floor:
            self.measures = (*type(self).measures, "below_floor", "sequences")
        self._self_normalised = self_normalised
        self._max_weight = max_weight

    def count(self, examples: Sequence[Example]) -> float:
        if self._self_normalised:
            return math.fsum(e.weight * e.labels for e in examples)
        return float(sum(e.labels for e in examples))

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        log_probs, correct = output[:2]
        loss = shown = weighted_nll(log_probs, batch.sequence, batch.weights)
        labels = torch.tensor(len(log_probs), dtype=torch.float64, device=loss.device)
        weight = batch.weights.double()[batch.sequence].sum() if self._self_normalised else labels
        measured = [shown.detach().double(), -log_probs.detach().double().sum(), correct.double().sum(), labels, weight]
        if self._floor:
            costs = sequence_sums(-log_probs.detach(), batch.label_counts) / batch.label_counts.clamp(min=1)
            above = costs >= self._floor
            loss = weighted_nll(log_probs, batch.sequence, batch.weights * above)
            measured += [(~above).double().sum(), torch.ones_like(costs, dtype=torch.float64).sum()]
        return loss, torch.stack(measured)

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        labels = sums["labels"]
        figures = {
            "loss": sums["loss_sum"] / sums["count"],
            "perplexity": math.exp(min(sums["nll"] / labels, 700.0)),
            "token_accuracy": sums["correct"] / labels,
        }
        return figures | ({"below_floor": sums["below_floor"] / sums["sequences"]} if self._floor else {})

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
