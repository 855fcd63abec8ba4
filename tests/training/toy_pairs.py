"""A method of these tests, which declares all that a preference method may: a reference's log-probs, an anchor that is
asked in the middle of training, and a figure of the global batch that every micro-batch needs.

    loss = sum -log sigma(beta ((l_w - r_w) - (l_l - r_l) - z)), z = mean over mismatched answers of l - a, detached,
with l, r and a the log-probs of the model, the reference and the anchor.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.specs.method import Frozen, MethodSpec, Trained
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import sequence_sums
from steerboard_workers.alignment.objectives import LanguageObjective, Objective, Passes
from steerboard_workers.alignment.training_method import TrainingMethod


class ToyConfig(TrainingConfig):
    method: Literal["toy"]
    beta: float = 0.1
    share_prompt: bool = True


SPEC = MethodSpec(
    name="toy",
    title="Toy",
    about="Learns pairs.",
    source="nowhere",
    config=ToyConfig,
    training="toy_pairs:Toy",
    data=("preferences",),
    outputs=("policy",),
    sequences=2,
    frozen=(
        Frozen("reference", frozenset({"base", "policy"}), "", required=False, uses=("log_probs",)),
        Frozen("anchor", frozenset({"base", "policy"}), "", required=False),
        Frozen("judge", frozenset({"reward"}), "", required=False, reads="ends"),
    ),
)


class Toy(TrainingMethod[ToyConfig]):
    fields = ("prompt", "chosen", "rejected")
    sides = ("chosen", "rejected")

    def objective(self) -> Objective:
        return ToyObjective(self.config.beta)

    @property
    def shares_prompt(self) -> bool:
        return self.config.share_prompt


class ToyObjective:
    reads = "labels"
    measures = ("loss_sum", "pairs", "margin", "z", "passes")

    def __init__(self, beta: float) -> None:
        self._beta = beta

    def count(self, examples: Sequence[Example]) -> float:
        return float(len(examples))

    def prepare(self, examples: Sequence[Example], passes: Passes) -> Mapping[str, Tensor]:
        """Each prompt with the chosen answer of the next one."""
        following = itertools.chain(examples[1:], examples[:1])
        mixed = [replace(e, responses=n.responses[:1]) for e, n in zip(examples, following, strict=True)]
        of_model, of_anchor = passes.per_sequence(mixed), passes.per_sequence(mixed, "anchor")
        z = sum(float(l[0]) - float(a[0]) for l, a in zip(of_model, of_anchor, strict=True)) / len(mixed)  # noqa: E741
        return {"z": torch.tensor(z, dtype=torch.float32)}

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        log_ratios = sequence_sums(output[0], batch.label_counts) - batch.frozen_log_probs["reference"]
        chosen, rejected = log_ratios.view(-1, 2).unbind(1)
        z = batch.prepared["z"]
        loss = -F.logsigmoid(self._beta * (chosen - rejected - z)).sum()
        pairs = torch.tensor(float(len(chosen)), dtype=torch.float64)
        margin = (chosen - rejected).detach().double().sum()
        return loss, torch.stack([loss.detach().double(), pairs, margin, z.double() * pairs, pairs * 0 + 1])

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        named = {"loss": sums["loss_sum"], "margin": sums["margin"], "z": sums["z"]}
        return {name: value / sums["pairs"] for name, value in named.items()}

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        return {}


class CriticConfig(TrainingConfig):
    """Learns responses, and a critic that gives 1 wherever a token was learned."""

    method: Literal["toy_critic"]
    critic_rate: float = 1.0


CRITIC = MethodSpec(
    name="toy_critic",
    title="Toy with a critic",
    about="Learns responses and what they are worth.",
    source="nowhere",
    config=CriticConfig,
    training="toy_pairs:ToyCritic",
    data=("labelled", "instructions"),
    outputs=("policy", "critic"),
    also_trains=(Trained("critic", frozenset({"base", "reward", "critic"}), "", required=False),),
)


class ToyCritic(TrainingMethod[CriticConfig]):
    def objective(self) -> Objective:
        return ValueObjective()

    @property
    def rates(self) -> Mapping[str, float]:
        return {"critic": self.config.critic_rate}


class ValueObjective(LanguageObjective):
    measures = (*LanguageObjective.measures, "value_loss")

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        loss, sums = super().forward(output["model"], batch)
        wrong = (output["critic"] - 1.0).square().sum()
        return loss + wrong, torch.cat([sums, wrong.detach().double().view(1)])

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {**super().metrics(sums), "value_loss": sums["value_loss"] / sums["labels"]}
