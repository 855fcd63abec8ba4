"""Attention for sequences concatenated in one row, without padding.

Everything but attention works on each token alone, so only attention lays the sequences out side by side, padded to
the longest of the micro-batch, and puts its answers back into the row. Matrix products never see padding, and no
kernel for sequences of unequal lengths is needed. A prompt that several sequences share is in the row once. In
attention it asks once, too, and is seen by all of them, where that is less work than a causal row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
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
class Grid:
    """Some of a row's T tokens laid out as (rows, width).

    tokens (n,): which of them, None for all in order; places (n,): flat index in rows * width of each. copies:
    (tokens, places), each (C,), of tokens that are in several rows; none comes twice in one of them.
    """

    places: Tensor
    rows: int
    width: int
    tokens: Tensor | None = None
    copies: Sequence[tuple[Tensor, Tensor]] = ()

    def to(self, device: torch.device) -> Grid:
        moved = partial(Tensor.to, device=device, non_blocking=True)
        copies = [(moved(tokens), moved(to)) for tokens, to in self.copies]
        tokens = None if self.tokens is None else moved(self.tokens)
        return Grid(moved(self.places), self.rows, self.width, tokens, copies)

    def spread(self, row: Tensor) -> Tensor:
        """(1, heads, T, dim) -> (rows, heads, width, dim), zeros elsewhere."""
        tokens = row[0].transpose(0, 1)
        grid: Tensor = _Spread.apply(tokens, self)  # type: ignore[no-untyped-call]
        return grid.view(self.rows, self.width, *tokens.shape[1:]).transpose(1, 2)

    def of(self, row: Tensor) -> Tensor:
        """(T, ...) -> (n, ...)."""
        return row if self.tokens is None else row.index_select(0, self.tokens)

    def put(self, values: Tensor, row: Tensor) -> Tensor:
        """(n, ...) to where they belong in `row` (T, ...)."""
        return values if self.tokens is None else row.index_copy_(0, self.tokens, values)


@dataclass
class Further:
    """Responses behind a prompt that attention sees in another one's row: their tokens alone ask, and see the prompt
    and what precedes them. `asking` is (M, R), `seen` (M, P + R) with prompts at the left end of P; prompts (M,): how
    long they are."""

    asking: Grid
    seen: Grid
    prompts: Tensor

    def to(self, device: torch.device) -> Further:
        return Further(self.asking.to(device), self.seen.to(device), self.prompts.to(device, non_blocking=True))

    def visible(self) -> Tensor:
        """(M, 1, R, P + R) bool."""
        room = self.seen.width - self.asking.width
        place = torch.arange(self.seen.width, device=self.prompts.device)
        behind = torch.arange(self.asking.width, device=self.prompts.device)
        own = (place >= room) & (place <= room + behind[:, None])
        return ((place < self.prompts[:, None, None]) | own)[:, None]


@dataclass
class Segments:
    """Where a row's tokens are for attention: `first` in causal rows, `further` in others."""

    first: Grid
    further: Further | None = None
    _bias: dict[tuple[str, torch.dtype], Tensor] = field(default_factory=dict)

    def to(self, device: torch.device) -> Segments:
        return Segments(self.first.to(device), None if self.further is None else self.further.to(device))

    def gather(self, first: Tensor, further: Tensor | None) -> Tensor:
        """(rows, heads, width, dim) of each grid -> (1, T, heads, dim), what attention functions return."""
        flat = [one.transpose(1, 2).flatten(0, 1) for one in (first, further) if one is not None]
        row: Tensor = _Gather.apply(self, *flat)  # type: ignore[no-untyped-call]
        return row[None]

    def causal(self, dtype: torch.dtype) -> Tensor:
        """What to add to scores of `first`: 0 where a token is seen. The same for every layer."""
        width, device = self.first.width, self.first.places.device
        return self._bias_of("first", dtype, lambda: torch.ones(width, width, dtype=torch.bool, device=device).tril())

    def masked(self, dtype: torch.dtype) -> Tensor:
        """The same of `further`."""
        assert self.further is not None
        return self._bias_of("further", dtype, self.further.visible)

    def _bias_of(self, name: str, dtype: torch.dtype, seen: Callable[[], Tensor]) -> Tensor:
        if (name, dtype) not in self._bias:
            visible = seen()
            bias = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
            self._bias[name, dtype] = bias.masked_fill_(~visible, torch.finfo(dtype).min)
        return self._bias[name, dtype]


class _Spread(torch.autograd.Function):
    """tokens (T, heads, dim) -> (rows * width, heads, dim). Its backward adds up what the copies of a token got, where
    torch's own would go through them one index at a time."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, grid: Grid) -> Tensor:
        ctx.grid, ctx.tokens = grid, len(tokens)
        out = tokens.new_zeros(grid.rows * grid.width, *tokens.shape[1:])
        out.index_copy_(0, grid.places, grid.of(tokens))
        for of, to in grid.copies:
            out.index_copy_(0, to, tokens.index_select(0, of))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        grid: Grid = ctx.grid
        out = gradient.new_zeros(ctx.tokens, *gradient.shape[1:]) if grid.tokens is not None else gradient
        out = grid.put(gradient.index_select(0, grid.places), out)
        for of, to in grid.copies:
            out.index_copy_(0, of, out.index_select(0, of) + gradient.index_select(0, to))
        return out, None


class _Gather(torch.autograd.Function):
    """(rows * width, heads, dim) of each grid -> (T, heads, dim). What copies of a prompt attend to is what the first
    one does, and is left."""

    @staticmethod
    def forward(ctx: Any, segments: Segments, *grids: Tensor) -> Tensor:
        ctx.layouts = _asking(segments)
        ctx.sizes = [len(grid) for grid in grids]
        tokens = sum(len(layout.places) for layout in ctx.layouts)
        out = grids[0].new_empty(tokens, *grids[0].shape[1:])
        for layout, grid in zip(ctx.layouts, grids, strict=True):
            out = layout.put(grid.index_select(0, layout.places), out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        found = []
        for layout, size in zip(ctx.layouts, ctx.sizes, strict=True):
            out = gradient.new_zeros(size, *gradient.shape[1:])
            found.append(out.index_copy_(0, layout.places, layout.of(gradient)))
        return None, *found


def _asking(segments: Segments) -> list[Grid]:
    return [segments.first, *([] if segments.further is None else [segments.further.asking])]


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
    first, further = segments.first, segments.further
    laid_out = first.spread(query), first.spread(key), first.spread(value)
    out = _attend(*laid_out, scaling, dropout, segments.causal)
    if further is None:
        return segments.gather(out, None), None
    laid_out = further.asking.spread(query), further.seen.spread(key), further.seen.spread(value)
    return segments.gather(out, _attend(*laid_out, scaling, dropout, segments.masked, causal=False)), None


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float | None,
    dropout: float,
    bias: Callable[[torch.dtype], Tensor],
    causal: bool = True,
) -> Tensor:
    """(rows, heads, width, dim). `bias`: what to add to scores, of a dtype; where it is `causal`, kernels know it."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    short = key.shape[2] <= PLAIN_ATTENTION_TOKENS
    if query.device.type == "cpu" and query.dtype == torch.bfloat16 and short and not dropout:
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        scores = (query * scale) @ key.transpose(-1, -2) + bias(query.dtype)
        return scores.softmax(-1, dtype=torch.float32).to(query.dtype) @ value
    mask = None if causal else bias(query.dtype)
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scaling
    )


AttentionInterface.register(PADDING_FREE, padding_free_attention)
