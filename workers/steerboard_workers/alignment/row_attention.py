"""Attention over sequences of their own lengths on a CPU, by plain matrix products.

Each sequence is read where it is in the concatenated row: nothing is padded, and only a prompt's keys and values are
copied, for its further responses. Queries are taken in blocks that are not multiplied with what comes after them, which
a causal mask would hide. Weights of attention are kept for the backward pass, so this is for short sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Queries of a block. Smaller ones leave out more of what is hidden, and multiply smaller matrices.
BLOCK = 128


class Tree(NamedTuple):
    """A prompt at `start` of the row, and (offset from `start`, length) of the responses that continue it. The first
    one follows it."""

    start: int
    prompt: int
    responses: tuple[tuple[int, int], ...]

    @property
    def longest(self) -> int:
        """Tokens of its longest sequence."""
        return self.prompt + max(length for _, length in self.responses)


class _Block(NamedTuple):
    """Queries [begin, end) see `seen`, ranges of tokens one behind the other, except what comes after each of them in
    the last `end - begin` of these."""

    begin: int
    end: int
    seen: tuple[tuple[int, int], ...]

    def of(self, tokens: Tensor) -> Tensor:
        """(heads, T, dim) -> (heads, n, dim) of what is seen."""
        parts = [tokens[:, begin:end] for begin, end in self.seen]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def add(self, to: Tensor, values: Tensor) -> None:
        """(heads, n, dim) of what is seen, to (heads, T, dim)."""
        at = 0
        for begin, end in self.seen:
            to[:, begin:end] += values[:, at : at + end - begin]
            at += end - begin


def attend_by_row(query: Tensor, key: Tensor, value: Tensor, trees: Sequence[Tree], scale: float) -> Tensor:
    """(1, heads, T, dim) each -> (1, T, heads, dim). Scores are multiplied by `scale`; their softmax is in float32."""
    # Rotary positions may have left float32 where autocast is on, and backward passes are without it.
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else value.dtype
    row = (one[0].to(dtype) for one in (query, key, value))
    with torch.autocast("cpu", enabled=False):
        out: Tensor = _ByRow.apply(*row, trees, scale)  # type: ignore[no-untyped-call]
    return out[None]


class _ByRow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, trees: Sequence[Tree], scale: float) -> Tensor:
        heads, tokens, dim = query.shape
        out = query.new_empty(tokens, heads, dim)
        hidden = query.new_full((BLOCK, BLOCK), -torch.inf).triu_(1)
        query = query * scale
        kept = []
        for block in _blocks(trees):
            size = block.end - block.begin
            scores = query[:, block.begin : block.end] @ block.of(key).mT
            scores[..., -size:] += hidden[:size, :size]
            weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
            out[block.begin : block.end] = (weights @ block.of(value)).transpose(0, 1)
            kept.append(weights)
        if any(ctx.needs_input_grad):
            ctx.trees, ctx.scale = trees, scale
            ctx.save_for_backward(query, key, value, *kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, *kept = ctx.saved_tensors
        gradient = gradient.transpose(0, 1)
        of_query = torch.empty_like(query)
        of_key, of_value = torch.zeros_like(key), torch.zeros_like(value)
        for block, weights in zip(_blocks(ctx.trees), kept, strict=True):
            given = gradient[:, block.begin : block.end]
            block.add(of_value, weights.mT @ given)
            of_weights = given @ block.of(value).mT
            # weights * (of_weights - sum(of_weights * weights))
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            torch.mul(of_scores @ block.of(key), ctx.scale, out=of_query[:, block.begin : block.end])
            block.add(of_key, of_scores.mT @ query[:, block.begin : block.end])
        return of_query, of_key, of_value, None, None


def _blocks(trees: Sequence[Tree]) -> Iterator[_Block]:
    for start, prompt, responses in trees:
        end = start + prompt + responses[0][1]
        for begin in range(start, end, BLOCK):
            last = min(begin + BLOCK, end)
            yield _Block(begin, last, ((start, last),))
        for offset, length in responses[1:]:
            own = start + offset
            for begin in range(own, own + length, BLOCK):
                last = min(begin + BLOCK, own + length)
                yield _Block(begin, last, ((start, start + prompt), (own, last)))
