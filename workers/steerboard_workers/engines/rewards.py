"""What scores token sequences, whatever runs below it, and the engine that runs transformers below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch

from steerboard_workers.alignment.modules import RewardModule
from steerboard_workers.alignment.render import Renderer

# On a CPU larger batches fall out of its caches and run several times slower. Scores do not depend on the batch.
CPU_BATCH_TOKENS = 2048


class RewardEngine(Protocol):
    renderer: Renderer

    def score(self, sequences: Sequence[list[int]], batch_tokens: int) -> Iterator[tuple[list[int], list[float]]]:
        """(places, raw rewards) of some sequences at a time, each place exactly once. `batch_tokens`: padded tokens
        of one forward pass, where that is the engine's to choose."""
        ...


class TransformersRewards:
    """`model` is a sequence classifier with one label, in eval mode on `device`."""

    def __init__(self, model: Any, renderer: Renderer, device: torch.device) -> None:
        self.renderer = renderer
        self._module = RewardModule(model)
        self._device = device
        self._pad = int(renderer.tokenizer.pad_token_id)

    @torch.inference_mode()
    def score(self, sequences: Sequence[list[int]], batch_tokens: int) -> Iterator[tuple[list[int], list[float]]]:
        """Longest sequences first. A batch holds such of similar length; padding is on the right for causal models
        and the score is read at each sequence's last real token, so batch mates change nothing."""
        if self._device.type == "cpu":
            batch_tokens = min(batch_tokens, CPU_BATCH_TOKENS)
        for places in batches_by_tokens([len(ids) for ids in sequences], batch_tokens):
            width = len(sequences[places[0]])
            ids = torch.full((len(places), width), self._pad, dtype=torch.int64)
            for i, place in enumerate(places):
                ids[i, : len(sequences[place])] = torch.tensor(sequences[place])
            read = torch.tensor([i * width + len(sequences[place]) - 1 for i, place in enumerate(places)])
            yield places, self._module(ids.to(self._device), read.to(self._device)).tolist()


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
