"""What scores token sequences, whatever runs below it, and the engine that runs transformers below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch

from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batches.batching import Batcher, Layout
from steerboard_workers.alignment.batches.layouts import Prober, attention_window, probe_of
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import RewardModule
from steerboard_workers.alignment.rendering.render import Rendered, Renderer

# On a CPU larger batches fall out of its caches and run several times slower. Scores do not depend on the batch.
CPU_BATCH_TOKENS = 2048


class RewardEngine(Protocol):
    renderer: Renderer

    def score(self, sequences: Sequence[Rendered], batch_tokens: int) -> Iterator[tuple[list[int], list[float]]]:
        """(places, raw rewards) of some sequences at a time, each place exactly once. `batch_tokens`: padded tokens
        of one forward pass, where that is the engine's to choose."""
        ...


class TransformersRewards:
    """`model` is a sequence classifier with one label, in eval mode on `device`. `log` is told what it cannot do."""

    def __init__(
        self, model: Any, renderer: Renderer, device: torch.device, log: Callable[[str], None] = lambda line: None
    ) -> None:
        self.renderer = renderer
        self._module = RewardModule(model)
        self._device = device
        self._pad = int(renderer.tokenizer.pad_token_id)
        self._log = log
        self._own_attention = model.config._attn_implementation
        # How answers to one prompt are computed together; None where that was tried in vain.
        self._together: list[Batcher | None] = []
        self._noted: set[str] = set()

    @torch.inference_mode()
    def score(self, sequences: Sequence[Rendered], batch_tokens: int) -> Iterator[tuple[list[int], list[float]]]:
        """Longest sequences first. A batch holds such of similar length, and a prompt once for all its answers where
        the model allows it. Equal sequences are computed once. Batch mates change nothing beyond rounding."""
        if self._device.type == "cpu":
            batch_tokens = min(batch_tokens, CPU_BATCH_TOKENS)
        places: dict[tuple[bytes, int], list[int]] = {}
        for place, one in enumerate(sequences):
            places.setdefault((np.array(one.ids, dtype=np.int32).tobytes(), one.prompt_length), []).append(place)
        of_each = list(places.values())
        examples = [_example(row, sequences[same[0]]) for row, same in enumerate(of_each)]
        for batcher, some in self._ways(examples, batch_tokens):
            for part in batcher.cut(some)[0]:
                values = self._read(batcher, part)
                found = [(place, value) for e, value in zip(part, values, strict=True) for place in of_each[e.row]]
                yield [place for place, _ in found], [value for _, value in found]

    def _read(self, batcher: Batcher, part: list[Example]) -> list[float]:
        self._attend(PADDING_FREE if batcher.layout == "padding_free" else self._own_attention)
        values: list[float] = self._module(**batcher.collate(part).to(self._device).model_inputs()).tolist()
        return values

    def _attend(self, implementation: str) -> None:
        model = self._module.model
        if model.config._attn_implementation != implementation:
            model.set_attn_implementation(implementation)

    def _ways(self, examples: list[Example], batch_tokens: int) -> Iterator[tuple[Batcher, list[Example]]]:
        """How to compute which of them: by themselves, or together. Those that are longer than what a layer sees are
        by themselves: it may see less of a prompt than the mask of ours allows."""
        plain = Batcher("padded", "ends", batch_tokens, self._pad)
        sharing = replace(plain, share=True)
        window = attention_window(self._module.model)
        near, far = ([e for e in examples if (e.tokens > window) == beyond] for beyond in (False, True))
        if sharing.shares(far):
            self._note(
                f"answers that are longer with their prompts than the {window:g} tokens that attention sees do not "
                "share them"
            )
        together = self._sharing(plain, near) if sharing.shares(near) else None
        if together is None:
            yield plain, examples
            return
        yield together, near
        if far:
            yield plain, far

    def _sharing(self, plain: Batcher, examples: list[Example]) -> Batcher | None:
        """Tried out once."""
        if not self._together:
            self._attend(self._own_attention)
            prober = Prober(self._module, self._module, plain, probe_of(examples, share=True), self._device)
            layouts: tuple[Layout, ...] = ("padding_free", "padded") if self._device.type == "cpu" else ("padded",)
            ways = (replace(plain, layout=layout, share=True) for layout in layouts)
            self._together.append(next((way for way in ways if prober.layout_agrees(way)), None))
            if self._together[0] is None:
                self._note("this architecture cannot share prompts: each answer is computed with its own")
        found = self._together[0]
        return None if found is None else replace(found, micro_tokens=plain.micro_tokens)

    def _note(self, line: str) -> None:
        """Once for all that is scored."""
        if line not in self._noted:
            self._noted.add(line)
            self._log(line)


def _example(row: int, one: Rendered) -> Example:
    ids = np.array(one.ids, dtype=np.int32)
    return Example(row, ids[: one.prompt_length], (ids[one.prompt_length :],))


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
