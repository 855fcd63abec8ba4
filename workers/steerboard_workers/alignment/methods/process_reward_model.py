"""A process reward model: whether each step of an answer is right (arXiv 2305.20050)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.methods.process_reward_model import ProcessRewardModelConfig
from steerboard_contracts.models import ProcessReward
from steerboard_contracts.specs.method import Reads
from steerboard_contracts.step_labels import RIGHT
from steerboard_contracts.wording import counted
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.rendering.render import RenderedGroup, Renderer
from steerboard_workers.alignment.step_ends import StepEnds, step_bounds
from steerboard_workers.alignment.training_method import Row, Selection, Source, TrainingMethod

# A name of `Example.token_values`.
LABELS = "step_labels"
_ENDS = "step_ends"


class ProcessRewardModelling(TrainingMethod[ProcessRewardModelConfig]):
    """A row's steps are joined by the separator. Of an answer that the window cuts, the whole steps are learned."""

    fields: ClassVar[tuple[str, ...]] = ("prompt", "completions", "labels")

    def __init__(self, config: ProcessRewardModelConfig) -> None:
        super().__init__(config)
        self._counts: Counter[str] = Counter()

    def select(self, rows: list[Row], source: Source) -> Selection:
        separator = self.config.divider
        divided = 0
        for row in rows:
            row["response"] = separator.join(row["completions"])
            divided += any(len(step_bounds(step, separator)) > 1 for step in row["completions"])
        process = ProcessReward(separator=separator, aggregate=self.config.aggregate)
        selection = Selection(rows, info={"process": process})
        if divided:
            selection.warnings.append(
                f"{counted(divided, 'row')} of {source.name} have the separator {separator!r} within a step, which has "
                "one label at its end: an answer that is scored is read at every separator. Choose a separator that "
                "no step has"
            )
        return selection

    def render(self, renderer: Renderer, rows: list[Row]) -> list[RenderedGroup | None]:
        ends = StepEnds(renderer.tokenizer, renderer.stop_ids, self.config.divider)
        ends.check()
        groups = super().render(renderer, rows)
        for row, group in zip(rows, groups, strict=True):
            if group is not None:
                row[_ENDS] = ends.of(group.responses[0], group.leads[0])
        return groups

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example | None:
        """Returns None where no whole step is left, or where steps are joined in one token."""
        found, steps = row.pop(_ENDS), row["completions"]
        # A step with the separator in it is read at the last of its parts.
        last = np.cumsum([len(step_bounds(step, self.config.divider)) for step in steps]) - 1
        whole = len(found)
        if group.truncated and len(found) <= last[-1] + 1:
            whole -= 1  # the window may have cut it
        elif len(found) != last[-1] + 1:
            self._counts["joined_steps"] += 1
            return None
        kept = [step for step in range(len(steps)) if last[step] < whole]
        if self.config.last_step_only:
            kept = [step for step in kept if step == len(steps) - 1]
        if not kept:
            return None
        labels = np.array([float(row["labels"][step]) for step in kept], dtype=np.float32)
        example = Example.of(number, group)
        return replace(example, prompt_supervised=None, steps=(found[last[kept]],), token_values={LABELS: (labels,)})

    def objective(self) -> Objective:
        return StepObjective()

    def summary(self, evaluated: dict[str, float], held_out: int) -> dict[str, Any]:
        accuracy = evaluated.get("step_accuracy")
        return {**self._counts, "held_out_accuracy": accuracy, "answers": held_out}


class StepObjective:
    """sum over steps of -y log sigma(s) - (1 - y) log(1 - sigma(s)), of logits s and labels y.

    `first_wrong_accuracy`: the share of answers with a wrong step of which the first step that is taken for wrong is
    the first wrong one. `flawless_accuracy`: the share of the others of which no step is taken for wrong. Both are
    those of ProcessBench (arXiv 2412.06559), whose F1 is their harmonic mean.
    """

    reads: Reads = "ends"
    measures: tuple[str, ...] = (
        *("loss_sum", "steps", "correct", "right", "probability"),
        *("faulty", "first_found", "flawless", "none_found"),
    )

    def count(self, examples: Sequence[Example]) -> float:
        return float(sum(example.labels for example in examples))

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        """`output` (N,) logits of all steps."""
        labels = batch.token_values[LABELS]
        loss = F.binary_cross_entropy_with_logits(output, labels, reduction="sum")
        with torch.no_grad():
            right, seen = labels >= RIGHT, output.double()
            correct = torch.where(seen == 0, 0.5, ((seen > 0) == right).double())
            first, found = (first_of(wrong, batch.label_counts) for wrong in (~right, seen < 0))
            faulty, same = first < len(output), first == found
            figures = (right, seen.sigmoid(), faulty, faulty & same, ~faulty, ~faulty & same)
            steps = torch.tensor(len(output), dtype=torch.float64, device=loss.device)
            sums = [loss.double(), steps, correct.sum(), *(figure.double().sum() for figure in figures)]
        return loss, torch.stack(sums)

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        steps = sums["steps"]
        found = {
            "first_wrong_accuracy": (sums["first_found"], sums["faulty"]),
            "flawless_accuracy": (sums["none_found"], sums["flawless"]),
        }
        return {
            "loss": sums["loss_sum"] / steps,
            "step_accuracy": sums["correct"] / steps,
            **{name: right / answers for name, (right, answers) in found.items() if answers},
            "step_probability": sums["probability"] / steps,
            "right_steps": sums["right"] / steps,
        }

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        return {}


def first_of(which: Tensor, counts: Tensor) -> Tensor:
    """(S,) the place in `which` (N,) of the first true value of each of S sequences of `counts` (S,) values; N where
    there is none."""
    places = torch.arange(len(which), dtype=torch.float32, device=which.device)
    places = torch.where(which, places, float(len(which)))
    first: Tensor = torch.segment_reduce(places, "min", lengths=counts.long(), initial=float(len(which)))
    return first
