"""What scores token sequences, whatever runs below it, and the engine that runs transformers below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import RewardModule
from steerboard_workers.alignment.rendering.render import Rendered, Renderer
from steerboard_workers.alignment.step_rewards import StepRewards
from steerboard_workers.engines.shared_prompts import SharedPrompts

# On a CPU larger batches fall out of its caches and run several times slower. Scores do not depend on the batch.
CPU_BATCH_TOKENS = 2048


class RewardNotFinite(BadInput):
    """A reward model gave NaN or infinity; its weights are broken, or its precision is too low."""

    code = "non_finite_reward"
    title = "A reward is not a finite number"


class RewardEngine(Protocol):
    renderer: Renderer

    def score(self, sequences: Sequence[Rendered], batch_tokens: int) -> Iterator[tuple[list[int], list[float]]]:
        """(places, raw rewards) of some sequences at a time, each place exactly once. `batch_tokens`: padded tokens
        of one forward pass, where that is the engine's to choose."""
        ...


class TransformersRewards:
    """`model` is a sequence classifier with one label, in eval mode on `device`. `log` gets what it cannot do."""

    def __init__(
        self, model: Any, renderer: Renderer, device: torch.device, log: Callable[[str], None] = lambda line: None
    ) -> None:
        self.renderer = renderer
        self._device = device
        self._steps = StepRewards(renderer, renderer.process) if renderer.process else None
        self._passes = SharedPrompts(RewardModule(model), int(renderer.tokenizer.pad_token_id), device, log)

    def score(self, sequences: Sequence[Rendered], batch_tokens: int) -> Iterator[tuple[list[int], list[float]]]:
        """Longest sequences first. A batch holds such of similar length, and a prompt once for all its answers where
        the model allows it. Equal sequences are computed once. Batch mates change nothing beyond rounding."""
        if self._device.type == "cpu":
            batch_tokens = min(batch_tokens, CPU_BATCH_TOKENS)
        places: dict[tuple[bytes, int], list[int]] = {}
        for place, rendered in enumerate(sequences):
            places.setdefault((np.array(rendered.ids, dtype=np.int32).tobytes(), rendered.prompt_length), []).append(
                place
            )
        of_each = list(places.values())
        examples = [self._example(row, sequences[same[0]]) for row, same in enumerate(of_each)]
        for batcher, some in self._passes.ways(examples, batch_tokens):
            for part in batcher.cut(some)[0]:
                values = self._rewards(self._passes.forward(batcher, part), part)
                scored = [(place, value) for e, value in zip(part, values, strict=True) for place in of_each[e.row]]
                yield [place for place, _ in scored], [value for _, value in scored]

    def _example(self, row: int, rendered: Rendered) -> Example:
        ids = np.array(rendered.ids, dtype=np.int32)
        example = Example(row, ids[: rendered.prompt_length], (ids[rendered.prompt_length :],))
        return self._steps.divided(example) if self._steps else example

    def _rewards(self, read: torch.Tensor, part: Sequence[Example]) -> list[float]:
        """One of each example, from the values read of all, in their order."""
        if self._steps is None:
            values: list[float] = read.tolist()
            return values
        of_each = np.split(read.float().cpu().numpy(), np.cumsum([example.labels for example in part])[:-1])
        return [self._steps.reward(logits) for logits in of_each]


def batches_by_tokens(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Places by falling length, cut so that count x longest stays within the budget (one place at least)."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
