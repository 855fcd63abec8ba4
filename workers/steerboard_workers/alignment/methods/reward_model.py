"""A reward model by Bradley and Terry's model of choices: Eq. 2 of arXiv 2308.12050."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.methods.reward_model import RewardModelConfig
from steerboard_contracts.specs.method import Reads
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import correlation
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.pair_sides import learnable_pairs, left_out
from steerboard_workers.alignment.rendering.render import RenderedGroup
from steerboard_workers.alignment.training_method import Row, Selection, Source, TrainingMethod


class RewardModelling(TrainingMethod[RewardModelConfig]):
    """Learns from pairs, or from those of one half of the prompts. Those of equal or empty sides are left out."""

    fields: ClassVar[tuple[str, ...]] = ("prompt", "chosen", "rejected")
    sides: ClassVar[tuple[str, ...]] = ("chosen", "rejected")

    def __init__(self, config: RewardModelConfig) -> None:
        super().__init__(config)
        self._counts: Counter[str] = Counter()

    def select(self, rows: list[Row], source: Source) -> Selection:
        half = self.config.half
        kept = [row for row in rows if half is None or row["split"] == "held_out" or row["half"] == half]
        kept, self._counts = learnable_pairs(kept)
        return Selection(kept, notes=left_out(self._counts))

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example | None:
        """Returns None for sides that are equal where they were cut."""
        if group.responses[0] == group.responses[1]:
            self._counts["equal_pairs"] += 1
            return None
        return Example.of(number, group, margin=float(row.get("margin") or 0.0))

    def objective(self) -> Objective:
        return RewardObjective(self.config.centre, self.config.use_margin)

    @property
    def shares_prompt(self) -> bool:
        return self.config.share_prompt

    def summary(self, evaluated: dict[str, float], held_out: int) -> dict[str, Any]:
        return {**self._counts, "held_out_accuracy": evaluated.get("pair_accuracy"), "pairs": held_out}

    def nothing_left(self) -> str:
        half = self.config.half
        if half is None:
            return super().nothing_left()
        return f"It learns from half {half} of the prompts only: give more prompts that are not held out."


class RewardObjective:
    """Bradley-Terry with an optional margin and centring term; responses are ordered (chosen, rejected)."""

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


def bradley_terry(chosen: Tensor, rejected: Tensor, margin: Tensor | None = None, centre: float = 0.0) -> Tensor:
    """sum -log sigma(r_w - r_l - m) + lambda (r_w + r_l)^2: Eq. 2 of arXiv 2308.12050. All (pairs,), in float32."""
    difference = chosen - rejected if margin is None else chosen - rejected - margin
    loss = -F.logsigmoid(difference)
    if centre:
        loss = loss + centre * (chosen + rejected).square()
    return loss.sum()
