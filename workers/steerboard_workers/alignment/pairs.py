"""What methods that learn from preference pairs share: which pairs, how a loss is computed of them, what is measured.

A method gives each response a score, and compares the scores of the sides. A response is computed behind its prompt
once for both sides where the model allows it (`share_prompt`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.pairs import REFERENCE, BetaPairConfig, PairConfig, ReferencedPairConfig
from steerboard_contracts.specs.method import Reads
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import sequence_sums
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.pair_sides import learnable_pairs, left_out
from steerboard_workers.alignment.rendering.render import RenderedGroup
from steerboard_workers.alignment.training_method import Row, Selection, Source, TrainingMethod

P = TypeVar("P", bound=PairConfig)
Referenced = TypeVar("Referenced", bound=ReferencedPairConfig)
Beta = TypeVar("Beta", bound=BetaPairConfig)

# Two passes over the same tokens agree to this share of their log-probs: sides that differ by less are tied, so that
# half of the pairs are right while the policy is its reference.
ROUNDING = 1e-5


@dataclass(frozen=True)
class Responses:
    """The log-probs of S responses, chosen and rejected by turns, all (S,) float32.

    `log_probs`: l, sums over the tokens of a response, its end token included; `lengths`: how many these are.
    `reference`: l of the reference, if there is one. `before`: sums over what is learned of the prompt,
    `before_lengths` tokens.
    """

    log_probs: Tensor
    lengths: Tensor
    before: Tensor
    before_lengths: Tensor
    reference: Tensor | None = None

    @classmethod
    def of(cls, log_probs: Tensor, batch: MicroBatch) -> Responses:
        """`log_probs` (N,) of all labels of the batch."""
        before = batch.label_counts - batch.response_lengths
        counts = torch.stack([before, batch.response_lengths], dim=1).flatten()
        sums = sequence_sums(log_probs, counts).view(-1, 2)
        reference = batch.frozen_log_probs.get(REFERENCE.name)
        return cls(sums[:, 1], batch.response_lengths, sums[:, 0], before, reference)

    @classmethod
    def of_labels(cls, examples: Sequence[Example], labels: Sequence[Sequence[NDArray[np.float32]]]) -> Responses:
        """`labels`: of each example, log-probs (labels,) of each sequence."""
        pairs = [(example, side) for example in examples for side in range(len(example.responses))]
        values = [log_probs for sides in labels for log_probs in sides]
        lengths = [example.response_lengths[side] for example, side in pairs]
        reference = [example.frozen_log_probs.get(REFERENCE.name) for example in examples]
        known = [log_probs for log_probs in reference if log_probs is not None]
        return cls(
            torch.tensor([float(log_probs[-n:].sum()) for log_probs, n in zip(values, lengths, strict=True)]),
            torch.tensor(lengths, dtype=torch.float32),
            torch.tensor([float(log_probs[:-n].sum()) for log_probs, n in zip(values, lengths, strict=True)]),
            torch.tensor([float(len(log_probs) - n) for log_probs, n in zip(values, lengths, strict=True)]),
            torch.from_numpy(np.concatenate(known)) if len(known) == len(examples) and known else None,
        )

    @property
    def means(self) -> Tensor:
        """(S,) m = l / tokens."""
        return self.log_probs / self.lengths

    @property
    def log_ratios(self) -> Tensor:
        """(S,) l less the reference's."""
        assert self.reference is not None
        return self.log_probs - self.reference


@runtime_checkable
class GivesRewards(Protocol):
    """A method whose rewards come from the log-probs of responses, and so can be shown token by token."""

    def rewards(self, responses: Responses) -> Tensor:
        """(S,)"""
        ...


class PairMethod(TrainingMethod[P]):
    """All pairs whose sides differ. `score` and `loss` are the method's; rewards are `scale` times the scores."""

    fields: ClassVar[tuple[str, ...]] = ("prompt", "chosen", "rejected")
    sides: ClassVar[tuple[str, ...]] = ("chosen", "rejected")

    def __init__(self, config: P) -> None:
        super().__init__(config)
        self._counts: Counter[str] = Counter()

    def select(self, rows: list[Row], source: Source) -> Selection:
        """Leaves out pairs of which nothing can be learned: one side is empty, or both are equal."""
        kept, self._counts = learnable_pairs(rows)
        return Selection(kept, notes=left_out(self._counts))

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example | None:
        """Returns None for sides that are equal where they were cut."""
        if group.responses[0] == group.responses[1]:
            self._counts["equal_pairs"] += 1
            return None
        return self.learned(Example.of(number, group))

    def learned(self, example: Example) -> Example:
        """Earlier turns are the same on both sides, and no part of what is compared."""
        return replace(example, prompt_supervised=None)

    def objective(self) -> Objective:
        return PairObjective(self)

    @property
    def shares_prompt(self) -> bool:
        return self.config.share_prompt

    def score(self, responses: Responses) -> Tensor:
        """(S,), with gradient; the higher, the more the policy prefers a response."""
        raise NotImplementedError

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        """(pairs,) from the scores of the sides."""
        raise NotImplementedError

    def sft(self, responses: Responses) -> Tensor:
        """(S,) what SFT adds for a chosen response: the mean over its tokens of -log pi."""
        return -responses.means

    def rounding(self, responses: Responses) -> Tensor:
        """(S,) by how much a score may be off."""
        return torch.zeros_like(responses.log_probs)

    def rewards(self, responses: Responses) -> Tensor:
        """(S,) as metrics have them."""
        return self.scale * self.score(responses)

    @property
    def sft_weight(self) -> float:
        return 0.0

    @property
    def scale(self) -> float:
        return 1.0

    def summary(self, evaluated: dict[str, float], held_out: int) -> dict[str, Any]:
        return {**self._counts, "held_out_accuracy": evaluated.get("pair_accuracy"), "pairs": held_out}


class ReferencedPairs(PairMethod[Referenced]):
    """Scores are log-ratios of policy and reference: sums, or means over a response's tokens."""

    def score(self, responses: Responses) -> Tensor:
        return self._reduced(responses.log_ratios, responses)

    def rounding(self, responses: Responses) -> Tensor:
        return ROUNDING * self._reduced(responses.log_probs.abs(), responses)

    def _reduced(self, sums: Tensor, responses: Responses) -> Tensor:
        return sums if self.config.reduction == "sum" else sums / responses.lengths

    @property
    def sft_weight(self) -> float:
        return self.config.sft_weight


class BetaPairs(ReferencedPairs[Beta]):
    """Rewards are beta times the log-ratios."""

    @property
    def scale(self) -> float:
        return self.config.strength


class LogisticPairs(BetaPairs[Beta]):
    """-log sigma(beta h): Eq. 7 of arXiv 2305.18290."""

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        return -F.logsigmoid(self.scale * (chosen - rejected))


class PairObjective:
    """sum over pairs of `method`'s loss, and of SFT on the chosen side where it is weighted."""

    reads: Reads = "labels"
    measures: tuple[str, ...] = (
        *("loss_sum", "pairs", "correct", "chosen_reward", "rejected_reward"),
        *("chosen_log_prob", "rejected_log_prob", "chosen_tokens", "rejected_tokens", "chosen_nll"),
    )

    def __init__(self, method: PairMethod[Any]) -> None:
        self._method = method

    def count(self, examples: Sequence[Example]) -> float:
        return float(len(examples))

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        method, responses = self._method, Responses.of(output[0], batch)
        chosen, rejected = _sides(method.score(responses))
        losses = method.loss(chosen, rejected)
        sft = _sides(method.sft(responses))[0]
        if method.sft_weight:
            losses = losses + method.sft_weight * sft
        loss = losses.sum()
        with torch.no_grad():
            rewards = [method.scale * side.double().sum() for side in (chosen, rejected)]
            log_probs = [side.double().sum() for side in _sides(responses.log_probs)]
            lengths = [side.double().sum() for side in _sides(responses.lengths)]
            pairs = torch.tensor(len(chosen), dtype=torch.float64, device=loss.device)
            correct = _right(chosen - rejected, torch.stack(_sides(method.rounding(responses))).sum(0)).sum()
            sums = torch.stack([loss.double(), pairs, correct, *rewards, *log_probs, *lengths, sft.double().sum()])
        return loss, sums

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Rewards and log-probs are means over pairs, `chosen_nll` is a mean over tokens first."""
        mean = {name: value / sums["pairs"] for name, value in sums.items()}
        return {
            "loss": mean["loss_sum"],
            "pair_accuracy": mean["correct"],
            "margin": mean["chosen_reward"] - mean["rejected_reward"],
            "chosen_reward": mean["chosen_reward"],
            "rejected_reward": mean["rejected_reward"],
            "chosen_log_prob": mean["chosen_log_prob"],
            "rejected_log_prob": mean["rejected_log_prob"],
            "length_gap": mean["chosen_tokens"] - mean["rejected_tokens"],
            "chosen_nll": mean["chosen_nll"],
        }

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        return {}


def _sides(values: Tensor) -> tuple[Tensor, Tensor]:
    chosen, rejected = values.view(-1, 2).unbind(1)
    return chosen, rejected


def _right(difference: Tensor, bound: Tensor) -> Tensor:
    """(pairs,) 1 where the chosen side has the higher score, 1/2 where neither has, to within `bound`."""
    return (difference > bound).double() + 0.5 * (difference.abs() <= bound).double()
