"""Text generation over a transformers model: one decode loop with a key-value cache, left-padded batches.

Prompts of similar length are decoded together, the n answers to a prompt share its prefill, and rows that have
ended leave the batch at once, so that one long answer does not make the others pay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from steerboard_contracts.configs import Decoding
from steerboard_workers.alignment.render import Renderer
from steerboard_workers.engines.answers import Answer, Writer, asked, end_ids
from steerboard_workers.engines.cache import growing_cache
from steerboard_workers.engines.protocol import Completion, Delta, Request
from steerboard_workers.engines.sampling import next_tokens, stream_key

# Dropping rows copies the cache: worth it only when this share of the batch has ended.
COMPACT_SHARE = 0.125


@dataclass
class _Drawn(Answer):
    """An answer with its prompt and the key of its random stream."""

    prompt: list[int] = field(default_factory=list)
    key: int = 0


class TransformersEngine:
    """`model` is a causal LM in eval mode on `device`. Stops on the renderer's and the model's own end tokens."""

    def __init__(self, model: Any, renderer: Renderer, device: torch.device, batch_size: int = 64) -> None:
        self.model = model
        self.renderer = renderer
        self.device = device
        self.batch_size = batch_size
        self.stop_ids = end_ids(renderer, getattr(model.generation_config, "eos_token_id", None))
        self._pad = int(renderer.tokenizer.pad_token_id)

    def generate(
        self,
        requests: Sequence[Request],
        decoding: Decoding,
        seed: int,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Iterator[Completion]:
        """Completions in order of their prompts' lengths. Prompts that leave no room are cut from the left.

        Raises `BadInput` (`too_many_new_tokens`) when `max_new_tokens` alone fills the model's window.
        """
        answers = [
            _Drawn(one.request.row, n, one.limit, prompt=one.prompt, key=stream_key(seed, one.request.row, n))
            for one in asked(self.renderer, requests, decoding)
            for n in range(decoding.n)
        ]
        writer = Writer(self.renderer, self.stop_ids, decoding.stop, on_delta)
        for start in range(0, len(answers), self.batch_size):
            yield from self._decode(answers[start : start + self.batch_size], decoding, writer)

    @torch.inference_mode()
    def _decode(self, answers: list[_Drawn], decoding: Decoding, writer: Writer) -> list[Completion]:
        done: list[Completion] = []
        live: list[_Drawn | None] = list(answers)
        cache, logits, mask, positions = self._prefill(answers)
        keys = torch.tensor([a.key for a in answers], dtype=torch.int64, device=self.device)
        step = 0
        while True:
            at = torch.full_like(keys, step)
            tokens = next_tokens(logits, decoding, keys, at)
            for i, token in enumerate(tokens.tolist()):
                answer = live[i]
                if answer is None:
                    continue
                completion = writer.take(answer, [token])
                if completion is not None:
                    done.append(completion)
                    live[i] = None
            step += 1
            kept = [i for i, answer in enumerate(live) if answer is not None]
            if not kept:
                return done
            if len(live) - len(kept) >= COMPACT_SHARE * len(live):
                rows = torch.tensor(kept, device=self.device)
                cache.reorder_cache(rows)
                tokens, mask, positions, keys = (x.index_select(0, rows) for x in (tokens, mask, positions, keys))
                live = [live[i] for i in kept]
            # Rows that have ended stay until the next compaction; they must not run past the window.
            positions = (positions + 1).clamp(max=self.renderer.max_length - 1)
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            logits = self._forward(tokens[:, None], mask, positions[:, None], cache)

    def _prefill(self, answers: list[_Drawn]) -> tuple[Any, Tensor, Tensor, Tensor]:
        """Run each distinct prompt once. Returns cache, logits (B, V), mask (B, T), last positions (B,)."""
        place: dict[int, int] = {}
        for answer in answers:
            place.setdefault(answer.row, len(place))
        prompts: list[list[int]] = [[]] * len(place)
        for answer in answers:
            prompts[place[answer.row]] = answer.prompt
        longest = max(len(p) for p in prompts)
        ids = torch.tensor([[self._pad] * (longest - len(p)) + p for p in prompts], device=self.device)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=self.device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = growing_cache(self.model.config)
        logits = self._forward(ids, mask, positions, cache)
        last = positions[:, -1]
        if len(place) < len(answers):
            rows = torch.tensor([place[a.row] for a in answers], device=self.device)
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
