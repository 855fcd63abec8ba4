"""The places where attention finds the tokens of sequences that are concatenated in one row: grids, padded to the
longest of the micro-batch, or rows of their own lengths one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


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

    @cached_property
    def unpadded(self) -> Ragged:
        """The same rows without padding; computed once for all layers."""
        places = torch.cat([self.places, *(to for _, to in self.copies)])
        in_order, order = places.sort()
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order), device=order.device)
        begins = torch.arange(self.rows + 1, device=order.device) * self.width
        own, *copied = torch.split(rank, [len(self.places), *(len(to) for _, to in self.copies)])
        copies = [(tokens, to) for (tokens, _), to in zip(self.copies, copied, strict=True)]
        starts = torch.searchsorted(in_order, begins).int()
        return Ragged(own, 1, len(order), self.tokens, copies, begins=starts, longest=self.width)

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
class Ragged(Grid):
    """The rows of a grid one behind the other, without padding, as a single row. begins (rows + 1,) int32: where each
    begins, and the last one ends; none is longer than `longest`."""

    begins: Tensor = field(kw_only=True)
    longest: int = field(kw_only=True)

    @property
    def is_whole(self) -> bool:
        """Whether the segments are of all tokens, each once, in their order."""
        return self.tokens is None and not self.copies

    def spread(self, row: Tensor) -> Tensor:
        return row if self.is_whole else super().spread(row)


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
    """The places of a row's tokens for attention: `first` in causal rows, `further` in others."""

    first: Grid
    further: Further | None = None
    _bias: dict[tuple[str, torch.dtype], Tensor] = field(default_factory=dict)

    def to(self, device: torch.device) -> Segments:
        return Segments(self.first.to(device), None if self.further is None else self.further.to(device))

    def causal(self, dtype: torch.dtype) -> Tensor:
        """(width, width) to add to scores of `first`: 0 where a token is seen. The same for every layer."""
        width, device = self.first.width, self.first.places.device
        return self._bias_of("first", dtype, lambda: torch.ones(width, width, dtype=torch.bool, device=device).tril())

    def masked(self, dtype: torch.dtype) -> Tensor:
        """(M, 1, R, P + R), the same of `further`."""
        assert self.further is not None
        return self._bias_of("further", dtype, self.further.visible)

    def _bias_of(self, name: str, dtype: torch.dtype, seen: Callable[[], Tensor]) -> Tensor:
        if (name, dtype) not in self._bias:
            visible = seen()
            bias = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
            self._bias[name, dtype] = bias.masked_fill_(~visible, torch.finfo(dtype).min)
        return self._bias[name, dtype]


def gather(layouts: Sequence[Grid], grids: Sequence[Tensor]) -> Tensor:
    """(rows, heads, width, dim) of each layout -> (1, T, heads, dim), what attention functions return."""
    if isinstance(layouts[0], Ragged) and layouts[0].is_whole:
        return grids[0].transpose(1, 2)
    flat = [grid.transpose(1, 2).flatten(0, 1) for grid in grids]
    row: Tensor = _Gather.apply(layouts, *flat)  # type: ignore[no-untyped-call]
    return row[None]


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
    def forward(ctx: Any, layouts: Sequence[Grid], *grids: Tensor) -> Tensor:
        ctx.layouts = layouts
        ctx.sizes = [len(grid) for grid in grids]
        tokens = sum(len(layout.places) for layout in ctx.layouts)
        out = grids[0].new_empty(tokens, *grids[0].shape[1:])
        for layout, grid in zip(ctx.layouts, grids, strict=True):
            out = layout.put(grid.index_select(0, layout.places), out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradients = []
        for layout, size in zip(ctx.layouts, ctx.sizes, strict=True):
            out = gradient.new_zeros(size, *gradient.shape[1:])
            gradients.append(out.index_copy_(0, layout.places, layout.of(gradient)))
        return None, *gradients
