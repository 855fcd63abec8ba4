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
from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.render import Renderer
from steerboard_workers.engines.cache import growing_cache
from steerboard_workers.engines.protocol import Completion, Delta, Request
from steerboard_workers.engines.sampling import next_tokens, stream_key

# Of an answer, when nobody says how many; a model with a small window gets half of it.
DEFAULT_NEW_TOKENS = 256
# Dropping rows copies the cache: worth it only when this share of the batch has ended.
COMPACT_SHARE = 0.125


@dataclass
class _Answer:
    """One answer being written; `limit` is how many tokens it may have."""

    request: Request
    n: int
    prompt: list[int]
    limit: int
    key: int
    ids: list[int] = field(default_factory=list)
    shown: str = ""


class TransformersEngine:
    """`model` is a causal LM in eval mode on `device`. Stops on the renderer's and the model's own end tokens."""

    def __init__(self, model: Any, renderer: Renderer, device: torch.device, batch_size: int = 64) -> None:
        self.model = model
        self.renderer = renderer
        self.device = device
        self.batch_size = batch_size
        own = getattr(model.generation_config, "eos_token_id", None)
        ends = {*renderer.stop_ids, *(own if isinstance(own, list) else [own] if own is not None else [])}
        self.stop_ids = frozenset(int(i) for i in ends)
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
        answers = self._answers(requests, decoding, seed)
        for start in range(0, len(answers), self.batch_size):
            yield from self._decode(answers[start : start + self.batch_size], decoding, on_delta)

    def _answers(self, requests: Sequence[Request], decoding: Decoding, seed: int) -> list[_Answer]:
        window = self.renderer.max_length
        most = decoding.max_new_tokens or min(DEFAULT_NEW_TOKENS, window // 2)
        if most >= window:
            raise BadInput(
                f"max_new_tokens is {most}, but the model's window has {window} tokens in all",
                code="too_many_new_tokens",
                hint=f"Ask for at most {window // 2}, so that prompts keep some room.",
            )
        prompts = self.renderer.prompts_ids([r.prompt for r in requests], [r.score_text for r in requests], room=most)
        # Stable: equal lengths keep the order of their rows. The longest first, so that memory fails early or never.
        order = sorted(range(len(requests)), key=lambda i: -len(prompts[i]))
        return [
            _Answer(
                request=requests[i],
                n=n,
                prompt=prompts[i],
                limit=min(most, window - len(prompts[i])),
                key=stream_key(seed, requests[i].row, n),
            )
            for i in order
            for n in range(decoding.n)
        ]

    @torch.inference_mode()
    def _decode(
        self, answers: list[_Answer], decoding: Decoding, on_delta: Callable[[Delta], None] | None
    ) -> list[Completion]:
        done: list[Completion] = []
        live: list[_Answer | None] = list(answers)
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
                completion = self._take(answer, token, decoding)
                if on_delta is not None:
                    self._show(answer, completion, on_delta)
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

    def _prefill(self, answers: list[_Answer]) -> tuple[Any, Tensor, Tensor, Tensor]:
        """Run each distinct prompt once. Returns cache, logits (B, V), mask (B, T), last positions (B,)."""
        place: dict[int, int] = {}
        for answer in answers:
            place.setdefault(answer.request.row, len(place))
        prompts: list[list[int]] = [[]] * len(place)
        for answer in answers:
            prompts[place[answer.request.row]] = answer.prompt
        longest = max(len(p) for p in prompts)
        ids = torch.tensor([[self._pad] * (longest - len(p)) + p for p in prompts], device=self.device)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=self.device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = growing_cache(self.model.config)
        logits = self._forward(ids, mask, positions, cache)
        last = positions[:, -1]
        if len(place) < len(answers):
            rows = torch.tensor([place[a.request.row] for a in answers], device=self.device)
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

    def _take(self, answer: _Answer, token: int, decoding: Decoding) -> Completion | None:
        """Add a token to an answer; its completion when that ends it."""
        if token in self.stop_ids:
            return self._completion(answer, self.renderer.response_text(answer.ids), finished=True)
        answer.ids.append(token)
        if decoding.stop and self._may_stop(answer, decoding.stop):
            text = self.renderer.response_text(answer.ids)
            cut = min((at for at in (text.find(s) for s in decoding.stop) if at >= 0), default=-1)
            if cut >= 0:
                return self._completion(answer, text[:cut], finished=True)
        if len(answer.ids) >= answer.limit:
            return self._completion(answer, self.renderer.response_text(answer.ids), finished=False)
        return None

    def _may_stop(self, answer: _Answer, stops: Sequence[str]) -> bool:
        """Whether the last tokens hold a stop string: a token has at least one byte, so this many suffice."""
        window = max(len(s.encode()) for s in stops) + 4
        tail = self.renderer.tokenizer.decode(answer.ids[-window:], skip_special_tokens=True)
        return any(s in tail for s in stops)

    def _completion(self, answer: _Answer, text: str, finished: bool) -> Completion:
        return Completion(answer.request.row, answer.n, text, answer.ids, finished)

    def _show(self, answer: _Answer, completion: Completion | None, on_delta: Callable[[Delta], None]) -> None:
        """Hand out what is new. A half-written character (U+FFFD) waits for its other bytes."""
        text = self.renderer.response_text(answer.ids) if completion is None else completion.text
        if completion is None and text.endswith("�"):
            return
        if completion is not None or len(text) > len(answer.shown):
            on_delta(Delta(answer.request.row, answer.n, text[len(answer.shown) :], completion))
            answer.shown = text
