"""Log-probs of answers as they were drawn, under any model of the same tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.engines.shared_prompts import SharedPrompts


class Drawn(NamedTuple):
    """A prompt's token ids, and those that were drawn behind it, with the end token where one was. Neither is empty."""

    prompt: list[int]
    answer: list[int]

    @property
    def tokens(self) -> int:
        return len(self.prompt) + len(self.answer)


class AnswerLogProbs:
    """`model` is a causal LM in eval mode on `device`. Log-probs are of softmax(logits / temperature). `log` is
    called once where prompts cannot be shared."""

    def __init__(
        self, model: Any, device: torch.device, pad: int, temperature: float, log: Callable[[str], None]
    ) -> None:
        module = PolicyModule(model)
        module.temperature = temperature
        self._passes = SharedPrompts(module.eval(), pad, device, log)

    def passes(self, drawn: Sequence[Drawn], batch_tokens: int) -> Iterator[tuple[list[int], Batcher, list[Example]]]:
        """(places, what `read` takes) of each pass over all of them, a prompt once for all its answers where the model
        allows it: what an answer gets depends on its pass, in the last bit."""
        examples = [
            Example(place, np.array(sample.prompt, dtype=np.int32), (np.array(sample.answer, dtype=np.int32),))
            for place, sample in enumerate(drawn)
        ]
        for batcher, some in self._passes.ways(examples, batch_tokens):
            for part in batcher.cut(some)[0]:
                yield [example.row for example in part], batcher, part

    def read(self, batcher: Batcher, part: Sequence[Example]) -> list[float]:
        """The sum over the tokens of each answer of log softmax(logits / temperature), in nats."""
        log_probs = self._passes.forward(batcher, part)[0].double().cpu()
        return [float(values.sum()) for values in log_probs.split([example.labels for example in part])]
