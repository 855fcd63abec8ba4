"""One decode loop over a transformers model: a key-value cache, left-padded batches.

The answers to a prompt share its prefill, and rows that have ended leave the batch at once, so that one long answer
does not make the others pay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from steerboard_contracts.configs import Decoding
from steerboard_workers.engines.cache import growing_cache
from steerboard_workers.engines.sampling import log_probs_of, next_tokens

# Dropping rows copies the cache: worth it only when this share of the batch has ended.
COMPACT_SHARE = 0.125

Take = Callable[[int, int, float], bool]
"""Called with an answer's place, its next token and the token's log-prob; True when the token ends the answer."""


@dataclass(frozen=True)
class Stream:
    """An answer to be drawn. `key` is that of its random numbers; answers of one `group` have the same prompt."""

    prompt: Sequence[int]
    group: int
    key: int


@dataclass(frozen=True)
class Decoder:
    """`model` is a causal LM in eval mode on `device`, with a window of so many tokens. Gradients are the caller's
    matter. `log_probs`: compute those of the tokens; 0 otherwise."""

    model: Any
    device: torch.device
    pad: int
    window: int
    log_probs: bool = False

    def run(self, streams: Sequence[Stream], decoding: Decoding, take: Take) -> None:
        """Draw tokens until `take` has ended each answer."""
        live: list[int | None] = list(range(len(streams)))
        cache, logits, mask, positions = self._prefill(streams)
        keys = torch.tensor([s.key for s in streams], dtype=torch.int64, device=self.device)
        step = 0
        while True:
            tokens = next_tokens(logits, decoding, keys, torch.full_like(keys, step))
            measured = log_probs_of(tokens, logits, decoding).tolist() if self.log_probs else [0.0] * len(live)
            for i, token in enumerate(tokens.tolist()):
                place = live[i]
                if place is not None and take(place, token, measured[i]):
                    live[i] = None
            step += 1
            kept = [i for i, place in enumerate(live) if place is not None]
            if not kept:
                return
            if len(live) - len(kept) >= COMPACT_SHARE * len(live):
                rows = torch.tensor(kept, device=self.device)
                cache.reorder_cache(rows)
                tokens, mask, positions, keys = (x.index_select(0, rows) for x in (tokens, mask, positions, keys))
                live = [live[i] for i in kept]
            # Rows that have ended stay until the next compaction; they must not run past the window.
            positions = (positions + 1).clamp(max=self.window - 1)
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            logits = self._forward(tokens[:, None], mask, positions[:, None], cache)

    def _prefill(self, streams: Sequence[Stream]) -> tuple[Any, Tensor, Tensor, Tensor]:
        """Run each distinct prompt once. Returns cache, logits (B, V), mask (B, T), last positions (B,)."""
        place: dict[int, int] = {}
        prompts: list[list[int]] = []
        for stream in streams:
            if stream.group not in place:
                place[stream.group] = len(prompts)
                prompts.append(list(stream.prompt))
        longest = max(len(p) for p in prompts)
        ids = torch.tensor([[self.pad] * (longest - len(p)) + p for p in prompts], device=self.device)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=self.device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = growing_cache(self.model.config)
        logits = self._forward(ids, mask, positions, cache)
        last = positions[:, -1]
        if len(prompts) < len(streams):
            rows = torch.tensor([place[s.group] for s in streams], device=self.device)
            cache.reorder_cache(rows)
            logits, mask, last = (x.index_select(0, rows) for x in (logits, mask, last))
        return cache, logits, mask, last

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: Any) -> Tensor:
        """Logits (B, V) after the last token of ids (B, t)."""
        logits: Tensor = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits[:, -1]
