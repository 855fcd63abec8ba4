"""What the steps of an answer are worth together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.models import Aggregate, ProcessReward
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.step_ends import StepEnds


class StepRewards:
    """Reads answers as a process reward model learned them. `renderer`: the model's own."""

    def __init__(self, renderer: Renderer, process: ProcessReward) -> None:
        self._ends = StepEnds(renderer.tokenizer, renderer.stop_ids, process.separator)
        self._how = process.aggregate

    def divided(self, example: Example) -> Example:
        """The example with the places at which its steps end."""
        leads = example.leads or (0,) * len(example.responses)
        steps = tuple(self._ends.of(ids, lead) for ids, lead in zip(example.responses, leads, strict=True))
        return replace(example, steps=steps)

    def reward(self, logits: NDArray[np.float32]) -> float:
        """The reward of an answer, by the logits (steps,) of its steps."""
        return aggregated(logits, self._how)


def step_probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """(steps,) how likely each is right: sigma of the logits (steps,) of a process reward model."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-logits.astype(np.float64))))


def aggregated(logits: NDArray[np.float32], how: Aggregate) -> float:
    """The reward of an answer, from 0 to 1, by the logits (steps,) of its steps; NaN where one is NaN."""
    steps = step_probabilities(logits)
    if how == "min":
        return float(steps.min())
    if how == "product":
        return float(steps.prod())
    return float(steps[-1] if how == "last" else steps.mean())
