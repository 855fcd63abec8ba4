"""A pairwise preference model: Section 2.3 of arXiv 2405.07863 (RLHF Workflow).

Each pair is one question, its sides in an order that a coin of (seed, row) decides, and one learned token, "A" or "B":
-log pi(verdict). Held-out pairs are also asked in both orders, with p = softmax over {A, B}, averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from steerboard_contracts.methods.preference_model import PreferenceModelConfig
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import calibration_error
from steerboard_workers.alignment.objectives import LanguageObjective, Objective, Passes
from steerboard_workers.alignment.pair_sides import learnable_pairs, left_out
from steerboard_workers.alignment.rendering.preference_prompt import Comparison, PreferencePrompt
from steerboard_workers.alignment.rendering.render import RenderedGroup, Renderer
from steerboard_workers.alignment.training_method import Row, Selection, Source, TrainingMethod

FIGURES = ("pair_accuracy", "flip_rate", "calibration_error")


class PreferenceModelling(TrainingMethod[PreferenceModelConfig]):
    """Learns from pairs. Those of equal or empty sides teach nothing and are left out; no side is ever cut."""

    fields: ClassVar[tuple[str, ...]] = ("prompt", "chosen", "rejected")
    sides: ClassVar[tuple[str, ...]] = ("chosen", "rejected")

    def select(self, rows: list[Row], source: Source) -> Selection:
        for number, row in enumerate(rows):
            row.setdefault("row", number)
        kept, counts = learnable_pairs(rows)
        return Selection(kept, summary=dict(counts), notes=left_out(counts))

    def render(self, renderer: Renderer, rows: list[Row]) -> list[RenderedGroup | None]:
        """The responses of a group are the right verdict alone; of a held-out row its `other` has both verdicts, to the
        same pair in the other order."""
        prompt = PreferencePrompt(renderer)
        sides = [chosen_first(self.config.seed, row["row"]) for row in rows]
        chosen_in_front = [Comparison(row["prompt"], row["chosen"], row["rejected"]) for row in rows]
        orders = [
            comparison if first else comparison.swapped
            for comparison, first in zip(chosen_in_front, sides, strict=True)
        ]
        asked = prompt.questions(orders)
        held_out = [place for place, row in enumerate(rows) if row["split"] == "held_out"]
        others = dict(zip(held_out, prompt.questions([orders[place].swapped for place in held_out]), strict=True))
        groups: list[RenderedGroup | None] = []
        for place, (row, first, question) in enumerate(zip(rows, sides, asked, strict=True)):
            other = others.get(place)
            if question is None or (place in others and other is None):
                groups.append(None)
                continue
            if other is not None:
                row["other"] = _group(other.ids, [[token] for token in prompt.verdicts], other.cut)
            groups.append(_group(question.ids, [[prompt.verdicts[0 if first else 1]]], question.cut))
        return groups

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example:
        example = Example.of(number, group)
        return replace(example, companion=Example.of(number, row["other"])) if "other" in row else example

    def objective(self) -> Objective:
        return PreferenceObjective()

    def summary(self, evaluated: dict[str, float], held_out: int) -> dict[str, Any]:
        figures = {name: evaluated.get(name) for name in FIGURES[1:]}
        return {"held_out_accuracy": evaluated.get("pair_accuracy"), "pairs": held_out, **figures}


def chosen_first(seed: int, row: int) -> bool:
    """The coin that decides on the order of a pair's sides."""
    return bool(np.random.Generator(np.random.Philox(key=[seed % 2**64, row])).integers(2))


def _group(ids: list[int], responses: list[list[int]], cut: bool) -> RenderedGroup:
    return RenderedGroup(ids, [False] * len(ids), responses, cut)


class PreferenceObjective(LanguageObjective):
    """The likelihood of verdicts. Of examples with a companion, the same question in the other order with both
    verdicts, `prepare` finds how the model judges the pair in both orders."""

    measures: tuple[str, ...] = (*LanguageObjective.measures, "pairs", *FIGURES)

    def prepare(self, examples: Sequence[Example], passes: Passes) -> Mapping[str, Tensor]:
        asked = [example for example in examples if example.companion is not None]
        if not asked:
            return {}
        verdicts = [example.companion.responses for example in asked if example.companion is not None]
        own = [replace(e, responses=both, companion=None) for e, both in zip(asked, verdicts, strict=True)]
        others = [example.companion for example in asked if example.companion is not None]
        pairs = []
        for example, both, one, two in zip(
            asked, verdicts, passes.per_sequence(own), passes.per_sequence(others), strict=True
        ):
            right_is_a = np.array_equal(example.responses[0], both[0])
            pairs.append((_share(one, right_is_a), _share(two, not right_is_a)))
        figures = dict(zip(FIGURES, _figures(pairs), strict=True))
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in figures.items()}

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        loss, sums = super().forward(output, batch)
        rows = torch.tensor(float(len(batch.lengths)), dtype=torch.float64, device=sums.device)
        figures = [rows * batch.prepared[name] for name in FIGURES] if batch.prepared else [rows * 0] * len(FIGURES)
        return loss, torch.cat([sums, torch.stack([rows if batch.prepared else rows * 0, *figures])])

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """`verdict_accuracy`: how often the right verdict was the likeliest of all tokens, in the order of the coin."""
        figures = {"loss": sums["loss_sum"] / sums["count"], "verdict_accuracy": sums["correct"] / sums["labels"]}
        if pairs := sums["pairs"]:
            figures |= {name: sums[name] / pairs for name in FIGURES}
        return figures


def _share(log_probs: np.ndarray[Any, Any], first: bool) -> float:
    """softmax over {A, B}, of the right one. log_probs (2,)."""
    ahead = float(log_probs[0]) - float(log_probs[1])
    return 1 / (1 + math.exp(-ahead if first else ahead)) if abs(ahead) < 700 else float((ahead > 0) == first)


def _figures(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """`FIGURES` of pairs, each with the probability of the chosen side in either order. A tie is half right."""
    means = [(one + two) / 2 for one, two in pairs]
    right = sum(1.0 if p > 0.5 else 0.5 * (p == 0.5) for p in means)
    flips = sum((one - 0.5) * (two - 0.5) < 0 for one, two in pairs)
    return right / len(pairs), flips / len(pairs), calibration_error(means)
