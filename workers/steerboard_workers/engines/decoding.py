"""One decode loop over a transformers model: a key-value cache, left-padded rows.

The answers to a prompt share its prefill, and a row that has ended makes room for the next answer (continuous
batching), so that one long answer does not make the others wait.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import BadInput
from steerboard_workers.engines.cache import CHUNK, growing_cache, takes_rows
from steerboard_workers.engines.routes import RouteTrace
from steerboard_workers.engines.sampling import guided, log_probs_of, next_tokens

# Dropping rows copies the cache, and a prefill of few rows is slow: worth it only when this share has ended.
LEAST_SHARE = 0.125

# Without cuDNN, which Hopper GPUs may prefer: it builds a kernel for each length of the keys, and here every token is a
# new one. That this is what the first batches of a length cost (benchmarks/RESULTS.md) is suspected, not measured.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

Take = Callable[[int, int, float], bool]
"""Called with an answer's place, its next token and the token's log-prob; True when the token ends the answer."""


@dataclass(frozen=True)
class Stream:
    """An answer to be drawn. `key` is that of its random numbers; answers of one `group` have the same prompt.

    `against` is the prompt without its condition where answers are guided: all streams of a run have one, or none has.
    """

    prompt: Sequence[int]
    group: int
    key: int
    against: Sequence[int] | None = None

    @property
    def room(self) -> int:
        """Tokens of the longer of its prompts."""
        return max(len(self.prompt), len(self.against or ()))


@dataclass
class _Rows:
    """Answers being drawn. live: of each row its place, None once it has ended. logits (B, V) of the next token, mask
    (B, T), positions (B,) of the last token, keys (B,), drawn (B,): how many tokens each has. starts: the column of the
    mask at which each row begins. against: the same answers behind their prompts without a condition, with the same
    columns; only its logits, cache, mask and positions are read."""

    live: list[int | None]
    cache: Any
    logits: Tensor
    mask: Tensor
    positions: Tensor
    keys: Tensor
    drawn: Tensor
    starts: list[int]
    against: _Rows | None = None

    @property
    def parts(self) -> list[_Rows]:
        return [self] if self.against is None else [self, self.against]

    def next_logits(self, guidance: float) -> Tensor:
        return self.logits if self.against is None else guided(self.logits, self.against.logits, guidance)

    def ended(self) -> list[int]:
        return [row for row, place in enumerate(self.live) if place is None]

    def drop_ended(self, tokens: Tensor) -> Tensor:
        """Keep the others; returns `tokens` (B,) of these."""
        kept = [row for row, place in enumerate(self.live) if place is not None]
        rows = torch.tensor(kept, device=tokens.device)
        for part in self.parts:
            part.cache.reorder_cache(rows)
            part.mask, part.positions, part.keys, part.drawn = (
                x.index_select(0, rows) for x in (part.mask, part.positions, part.keys, part.drawn)
            )
        self.live, self.starts = [self.live[row] for row in kept], [self.starts[row] for row in kept]
        return tokens.index_select(0, rows)

    def replace(self, rows: Sequence[int], by: _Rows) -> None:
        """Rows that have ended by all of `by`, whose prompts are no longer than these rows."""
        where = torch.tensor(rows, device=self.mask.device)
        shift = self.mask.shape[1] - by.mask.shape[1]
        for part, new in zip(self.parts, by.parts, strict=True):
            for layer, other in zip(part.cache.layers, new.cache.layers, strict=True):
                layer.replace_rows(where, other)
            part.mask[where] = torch.nn.functional.pad(new.mask, (shift, 0))
            part.positions[where], part.keys[where], part.drawn[where] = new.positions, new.keys, new.drawn
        for row, place, start in zip(rows, by.live, by.starts, strict=True):
            self.live[row], self.starts[row] = place, start + shift

    def forget_unused(self) -> None:
        """The first columns, where no row needs them any more. A layer with a sliding window does so by itself, and all
        have the same mask."""
        if not takes_rows(self.cache):
            return
        unused = min((self.starts[row] for row, place in enumerate(self.live) if place is not None), default=0)
        if unused >= CHUNK:
            for part in self.parts:
                for layer in part.cache.layers:
                    layer.forget(unused)
                part.mask = part.mask[:, unused:]
            self.starts = [start - unused for start in self.starts]


@dataclass(frozen=True)
class Decoder:
    """`model` is a causal LM in eval mode on `device`, with a window of so many tokens; `width` answers are drawn at
    the same time. Gradients are the caller's matter. `log_probs`: compute those of the tokens; 0 otherwise. `silent`:
    tokens that are never drawn. `trace` takes down the experts of the answers' tokens, where these are not guided."""

    model: Any
    device: torch.device
    pad: int
    window: int
    width: int
    log_probs: bool = False
    silent: Sequence[int] = ()
    trace: RouteTrace | None = None

    def run(self, streams: Sequence[Stream], decoding: Decoding, take: Take) -> Iterator[int]:
        """Draw tokens until `take` has ended each answer. Gives the places of answers as they end."""
        order = sorted(range(len(streams)), key=lambda place: -streams[place].room)
        if takes_rows(growing_cache(self.model.config)):
            yield from self._run(streams, order, decoding, take)
            return
        for start in range(0, len(order), self.width):
            yield from self._run(streams, order[start : start + self.width], decoding, take)

    def _run(self, streams: Sequence[Stream], order: Sequence[int], decoding: Decoding, take: Take) -> Iterator[int]:
        """`order`: places of streams, the longest prompts first, so that a new one fits into the row of an old one."""
        if not order:
            return
        rows, waiting = self._prefill(streams, order[: self.width]), list(order[self.width :])
        least = max(1, int(LEAST_SHARE * min(self.width, len(order))))
        while True:
            tokens, ended = self._draw(rows, decoding, take)
            yield from ended
            free = rows.ended()
            while waiting and len(free) >= least:
                new = self._prefill(streams, waiting[: len(free)])
                waiting = waiting[len(free) :]
                drawn, ended = self._draw(new, decoding, take)
                yield from ended
                taken = free[: len(new.live)]
                rows.replace(taken, new)
                tokens[taken] = drawn
                free = rows.ended()
            if len(free) == len(rows.live):
                return
            if not waiting and len(free) >= LEAST_SHARE * len(rows.live):
                tokens = rows.drop_ended(tokens)
            rows.forget_unused()
            for part in rows.parts:
                # Rows that have ended stay until the next compaction; they must not run past the window.
                part.positions = (part.positions + 1).clamp(max=self.window - 1)
                part.mask = torch.cat([part.mask, part.mask.new_ones(len(part.mask), 1)], dim=1)
                of_rows = [[] if place is None else [place] for place in rows.live]
                part.logits = self._forward(tokens[:, None], part.mask, part.positions[:, None], part.cache, of_rows)

    def _draw(self, rows: _Rows, decoding: Decoding, take: Take) -> tuple[Tensor, list[int]]:
        """The next token (B,) of every row, and the places of the answers that it has ended."""
        logits = rows.next_logits(decoding.guidance)
        drawable = logits
        if self.silent:
            drawable = logits.index_fill(-1, torch.tensor(self.silent, device=logits.device), -torch.inf)
        tokens = next_tokens(drawable, decoding, rows.keys, rows.drawn)
        measured = log_probs_of(tokens, logits, decoding) if self.log_probs else torch.zeros(len(rows.live))
        rows.drawn = rows.drawn + 1
        log_probs, ended = measured.tolist(), []
        for row, token in enumerate(tokens.tolist()):
            place = rows.live[row]
            if place is not None and take(place, token, log_probs[row]):
                rows.live[row] = None
                ended.append(place)
        return tokens, ended

    def _prefill(self, streams: Sequence[Stream], places: Sequence[int]) -> _Rows:
        longest = max(streams[place].room for place in places)
        rows = self._prefill_prompts(streams, places, [streams[place].prompt for place in places], longest)
        against = [stream for stream in (streams[place].against for place in places) if stream is not None]
        if against:
            rows.against = self._prefill_prompts(streams, places, against, longest)
        return rows

    def _prefill_prompts(
        self, streams: Sequence[Stream], places: Sequence[int], given: Sequence[Sequence[int]], longest: int
    ) -> _Rows:
        """Run each distinct prompt once, padded to `longest` tokens. `given`: those of the places."""
        at: dict[int, int] = {}
        prompts: list[list[int]] = []
        for place, prompt in zip(places, given, strict=True):
            if streams[place].group not in at:
                at[streams[place].group] = len(prompts)
                prompts.append(list(prompt))
        ids = torch.tensor([[self.pad] * (longest - len(p)) + p for p in prompts], device=self.device)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=self.device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = growing_cache(self.model.config)
        of_rows: list[list[int]] = [[] for _ in prompts]
        for place in places:
            of_rows[at[streams[place].group]].append(place)
        try:
            logits = self._forward(ids, mask, positions, cache, of_rows)
        except ValueError as error:  # from the architecture's own check of its inputs
            raise BadInput(
                f"{type(self.model).__name__} does not decode with the cache of this engine: {error}",
                code="engine_refused",
                hint="Use engine: vllm, or an endpoint that serves the model.",
            ) from error
        last = positions[:, -1]
        of_prompt = [at[streams[place].group] for place in places]
        if len(prompts) < len(places):
            repeated = torch.tensor(of_prompt, device=self.device)
            cache.reorder_cache(repeated)
            logits, mask, last = (x.index_select(0, repeated) for x in (logits, mask, last))
        keys = torch.tensor([streams[place].key for place in places], dtype=torch.int64, device=self.device)
        starts = [longest - streams[place].room for place in places]
        return _Rows(list(places), cache, logits, mask, last, keys, torch.zeros_like(keys), starts)

    def _forward(
        self, ids: Tensor, mask: Tensor, positions: Tensor, cache: Any, places: Sequence[Sequence[int]]
    ) -> Tensor:
        """Logits (B, V) after the last token of ids (B, t). `places` of the answers that each row is of."""
        following = contextlib.nullcontext() if self.trace is None else self.trace.following(places, mask, ids.shape[1])
        with sdpa_kernel(ATTENTION), following:
            logits: Tensor = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits
        return logits[:, -1]
