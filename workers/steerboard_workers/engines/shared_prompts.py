"""Passes over answers outside of training, a prompt computed once for all its answers where the model allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from steerboard_contracts.specs.method import Reads
from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.batches.layouts import Prober, attention_window, padding_cost, probe_of
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule, RewardModule


class SharedPrompts:
    """The shared prompts of one model, in eval mode on `device`. `log` gets what it cannot do, once."""

    def __init__(
        self, module: PolicyModule | RewardModule, pad: int, device: torch.device, log: Callable[[str], None]
    ) -> None:
        self.module = module
        self._pad = pad
        self._device = device
        self._log = log
        self._reads: Reads = "ends" if isinstance(module, RewardModule) else "labels"
        self._own_attention = module.model.config._attn_implementation
        # How answers to one prompt are computed together; None where that attempt failed.
        self._together: list[Batcher | None] = []
        self._knows_head = False
        self._noted: set[str] = set()

    @torch.inference_mode()
    def ways(self, examples: Sequence[Example], batch_tokens: int) -> Iterator[tuple[Batcher, Sequence[Example]]]:
        """How to compute which of them: by themselves, or together. A function of all of them and the model. Those that
        are longer than what a layer sees are by themselves: it may see less of a prompt than the mask of ours
        allows."""
        model = self.module.model
        cost = padding_cost(model, self._device, model.dtype)
        plain = Batcher("padded", self._reads, batch_tokens, self._pad, padding_cost=cost)
        self._try_head(plain, examples)
        sharing = replace(plain, share=True)
        window = attention_window(model)
        near, far = ([e for e in examples if (max(e.lengths) > window) == beyond] for beyond in (False, True))
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

    @torch.inference_mode()
    def forward(self, batcher: Batcher, part: Sequence[Example]) -> Any:
        """What the module gives for one pass."""
        self._attend(PADDING_FREE if batcher.layout == "padding_free" else self._own_attention)
        return self.module(**batcher.collate(part).to(self._device).model_inputs())

    def _attend(self, implementation: str) -> None:
        model = self.module.model
        if model.config._attn_implementation != implementation:
            model.set_attn_implementation(implementation)

    def _try_head(self, plain: Batcher, examples: Sequence[Example]) -> None:
        """Finds out once whether log-probs are those of the LM head alone, or of the model's own full forward."""
        if self._knows_head or isinstance(self.module, RewardModule) or not examples:
            return
        self._attend(self._own_attention)
        prober = Prober(self.module, self.module, plain, probe_of(examples, share=False), self._device)
        self.module.whole_head = not prober.head_agrees()
        self._knows_head = True

    def _sharing(self, plain: Batcher, examples: Sequence[Example]) -> Batcher | None:
        """Tried out once."""
        if not self._together:
            self._attend(self._own_attention)
            prober = Prober(self.module, self.module, plain, probe_of(examples, share=True), self._device)
            ways = (replace(plain, layout="padding_free", share=True), replace(plain, share=True))
            self._together.append(next((way for way in ways if prober.layout_agrees(way)), None))
            if self._together[0] is None:
                self._note("this architecture cannot share prompts: each answer is computed with its own")
        batcher = self._together[0]
        return None if batcher is None else replace(batcher, micro_tokens=plain.micro_tokens)

    def _note(self, line: str) -> None:
        if line not in self._noted:
            self._noted.add(line)
            self._log(line)
