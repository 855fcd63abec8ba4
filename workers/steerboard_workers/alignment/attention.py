"""Attention for sequences concatenated in one row, without padding.

Everything but attention works on each token alone, so only attention lays the sequences out side by side, padded to
the longest of the micro-batch, and puts its answers back into the row. Matrix products never see padding, and no
kernel for sequences of unequal lengths is needed. A prompt that several sequences share is in the row once, and in
front of each of them in attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

PADDING_FREE = "steerboard_padding_free"
# On a CPU, flash attention's backward takes longer in bf16 than in float32 and twice as long as plain matrix products.
# Those keep the attention weights, quadratic in length, so they are for short sequences.
PLAIN_ATTENTION_TOKENS = 512


@dataclass
class Segments:
    """Where a row's T tokens are when its sequences are laid out as (rows, width).

    places (T,): flat index in rows * width of each token. copies: (tokens, places), each (C,), of prompts that are
    in several rows; no token comes twice in one of them.
    """

    places: Tensor
    rows: int
    width: int
    copies: Sequence[tuple[Tensor, Tensor]] = ()
    _bias: dict[torch.dtype, Tensor] = field(default_factory=dict)

    def to(self, device: torch.device) -> Segments:
        copies = [
            (tokens.to(device, non_blocking=True), to.to(device, non_blocking=True)) for tokens, to in self.copies
        ]
        return Segments(self.places.to(device, non_blocking=True), self.rows, self.width, copies)

    def spread(self, row: Tensor) -> Tensor:
        """(1, heads, T, dim) -> (rows, heads, width, dim), zeros elsewhere."""
        tokens = row[0].transpose(0, 1)
        grid: Tensor = _Spread.apply(tokens, self)  # type: ignore[no-untyped-call]
        return grid.view(self.rows, self.width, *tokens.shape[1:]).transpose(1, 2)

    def gather(self, grid: Tensor) -> Tensor:
        """(rows, heads, width, dim) -> (1, T, heads, dim), what attention functions return."""
        row: Tensor = _Gather.apply(grid.transpose(1, 2).flatten(0, 1), self)  # type: ignore[no-untyped-call]
        return row[None]

    def bias(self, dtype: torch.dtype) -> Tensor:
        """What to add to scores: 0 where a token is seen. The same for every layer."""
        if dtype not in self._bias:
            unseen = torch.ones(self.width, self.width, dtype=torch.bool, device=self.places.device).triu(1)
            self._bias[dtype] = torch.zeros(unseen.shape, dtype=dtype, device=unseen.device).masked_fill_(
                unseen, torch.finfo(dtype).min
            )
        return self._bias[dtype]


class _Spread(torch.autograd.Function):
    """tokens (T, heads, dim) -> (rows * width, heads, dim). Its backward adds up what the copies of a token got, where
    torch's own would go through them one index at a time."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, segments: Segments) -> Tensor:
        ctx.segments = segments
        grid = tokens.new_zeros(segments.rows * segments.width, *tokens.shape[1:])
        grid.index_copy_(0, segments.places, tokens)
        for of, to in segments.copies:
            grid.index_copy_(0, to, tokens.index_select(0, of))
        return grid

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        segments: Segments = ctx.segments
        out = gradient.index_select(0, segments.places)
        for of, to in segments.copies:
            out.index_copy_(0, of, out.index_select(0, of) + gradient.index_select(0, to))
        return out, None


class _Gather(torch.autograd.Function):
    """grid (rows * width, heads, dim) -> (T, heads, dim). What copies of a prompt attend to is what the first one
    does, and is left."""

    @staticmethod
    def forward(ctx: Any, grid: Tensor, segments: Segments) -> Tensor:
        ctx.segments, ctx.places = segments, len(grid)
        return grid.index_select(0, segments.places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        out = gradient.new_zeros(ctx.places, *gradient.shape[1:])
        return out.index_copy_(0, ctx.segments.places, gradient), None


def padding_free_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    segments: Segments | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[Tensor, None]:
    """An attention function of transformers. Without `segments` it is its `sdpa`.

    Raises NotImplementedError for what only other attention functions compute.
    """
    if segments is None:
        attended: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options
        )
        return attended
    unknown = [name for name in ("softcap", "s_aux", "position_bias") if options.get(name) is not None]
    if unknown:
        raise NotImplementedError(f"padding-free attention knows no {', '.join(unknown)}")
    query, key, value = (segments.spread(x) for x in (query, key, value))
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    plain = query.device.type == "cpu" and query.dtype == torch.bfloat16 and segments.width <= PLAIN_ATTENTION_TOKENS
    if plain and not dropout:
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        scores = (query * scale) @ key.transpose(-1, -2) + segments.bias(query.dtype)
        out = scores.softmax(-1, dtype=torch.float32).to(query.dtype) @ value
    else:
        out = F.scaled_dot_product_attention(
            query,
            key,
            value,
            dropout_p=dropout,
            is_causal=True,
            scale=scaling,
        )
    return segments.gather(out), None


AttentionInterface.register(PADDING_FREE, padding_free_attention)
