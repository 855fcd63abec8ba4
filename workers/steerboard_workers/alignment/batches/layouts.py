"""Which ways to lay sequences out give the same numbers with a model: tried out, since architectures differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from steerboard_workers.alignment.attention import PADDING_FREE, takes_lengths
from steerboard_workers.alignment.batches.batching import PADDING_COST, Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule, RewardModule, body_of

# Two ways to compute the same hidden states in float32 agree better than this, relative to their spread; a leak
# between sequences or a cap on logits is orders of magnitude larger.
AGREE = 2e-4
# In bf16, of a token's hidden state (a hundred layers round it by some 5%), and of the log-probs of one head.
AGREE_BF16 = 0.1
AGREE_BF16_HEAD = 0.02
PROBE_EXAMPLES = 3


def attention_window(model: Any) -> float:
    """Tokens that each layer sees back. A mask of ours would undo a model's own window; probes are too short for it."""
    config = model.config.get_text_config()
    windows = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
    return min((float(window) for window in windows if window), default=math.inf)


def padding_cost(model: Any, device: torch.device, dtype: torch.dtype) -> float:
    """The cost of padding for `Batcher`, where this model's activations are of `dtype`."""
    # Some configs refuse to be asked for what may differ by layer; written out they have it.
    config = model.config.get_text_config().to_dict()
    heads = config.get("num_attention_heads")
    dim = config.get("head_dim") or (config["hidden_size"] // heads if heads else None)
    return 0.0 if dim is not None and takes_lengths(device, dtype, dim) else PADDING_COST


def probe_of(examples: Sequence[Example], share: bool) -> list[Example]:
    """The shortest. `share`: each with two responses at least, so that one could see the other."""
    shortest = sorted(examples, key=lambda e: e.tokens)[:PROBE_EXAMPLES]
    if not share:
        return shortest
    return [
        replace(e, responses=e.responses * 2, steps=e.steps * 2, frozen_log_probs={}, token_values={})
        if len(e.responses) == 1
        else e
        for e in shortest
    ]


@dataclass(frozen=True)
class Prober:
    """Compares two ways to compute the same of a few examples. `mixed`: activations are in bf16, though what `forward`
    returns is float32."""

    module: PolicyModule | RewardModule
    forward: Callable[..., Any]
    plain: Batcher
    examples: list[Example]
    device: torch.device
    mixed: bool = False

    @torch.no_grad()
    def head_agrees(self) -> bool:
        model = self.module.model
        head = model.get_output_embeddings()
        head = getattr(head, "original_module", head)  # below what peft trains of it
        width = getattr(model.config.get_text_config(), "hidden_size", head.in_features)
        if body_of(model) is model or head.in_features != width:
            return False
        batch = self.plain.collate(self.examples).to(self.device)
        full, _ = self.forward(**batch.model_inputs(), probe="whole_head")
        ours, _ = self.forward(**batch.model_inputs())
        return self._close(ours, full, AGREE_BF16_HEAD)

    @torch.no_grad()
    def layout_agrees(self, other: Batcher) -> bool:
        """Leaves the model with the attention that `other` needs when they agree, and with its own when not."""
        model = self.module.model
        own = model.config._attn_implementation
        expected = self._hidden(self.plain)
        try:
            if other.layout == "padding_free":
                model.set_attn_implementation(PADDING_FREE)
            agree = self._close(self._hidden(other), expected, AGREE_BF16)
        except Exception:
            # This architecture refuses such a mask or another attention, and its code need not foresee either.
            agree = False
        if not agree:
            model.set_attn_implementation(own)
        return agree

    def _hidden(self, batcher: Batcher) -> torch.Tensor:
        batch = batcher.collate(self.examples).to(self.device)
        hidden: torch.Tensor = self.forward(**batch.model_inputs(), probe="hidden")
        return hidden

    def _close(self, a: torch.Tensor, b: torch.Tensor, bound_bf16: float) -> bool:
        if a.shape != b.shape:
            return False
        rounded = self.mixed or a.dtype is not torch.float32
        a, b = a.float(), b.float()
        if rounded:
            return bool(((a - b).norm(dim=-1) <= bound_bf16 * b.norm(dim=-1)).all())
        return bool((a - b).abs().max() <= AGREE * (b.std() + b.abs().mean()))
