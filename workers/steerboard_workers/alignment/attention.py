"""Attention for sequences concatenated in one row, without padding.

Everything but attention works on each token alone, so only attention lays the sequences out side by side, padded to
the longest of the micro-batch, and puts its answers back into the row. Matrix products never see padding, and no
kernel for sequences of unequal lengths is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

PADDING_FREE = "steerboard_padding_free"
# On a CPU, flash attention's backward takes longer in bf16 than in float32 and twice as long as plain matrix products.
# Those keep the attention weights, quadratic in length, so they are for short sequences.
PLAIN_ATTENTION_TOKENS = 512


@dataclass
class Segments:
    """Positions of a row's T tokens when its sequences are laid out as (rows, width).

    places (T,): flat index in rows * width; visible (rows, 1, width, width) bool, or None for causal.
    """

    places: Tensor
    rows: int
    width: int
    visible: Tensor | None = None
    _bias: dict[torch.dtype, Tensor] = field(default_factory=dict)

    def to(self, device: torch.device) -> Segments:
        visible = None if self.visible is None else self.visible.to(device, non_blocking=True)
        return Segments(self.places.to(device, non_blocking=True), self.rows, self.width, visible)

    def spread(self, row: Tensor) -> Tensor:
        """(1, heads, T, dim) -> (rows, heads, width, dim), zeros elsewhere."""
        tokens = row[0].transpose(0, 1)
        grid = tokens.new_zeros(self.rows * self.width, *tokens.shape[1:]).index_copy(0, self.places, tokens)
        return grid.view(self.rows, self.width, *tokens.shape[1:]).transpose(1, 2)

    def gather(self, grid: Tensor) -> Tensor:
        """(rows, heads, width, dim) -> (1, T, heads, dim), what attention functions return."""
        return grid.transpose(1, 2).flatten(0, 1).index_select(0, self.places)[None]

    def bias(self, dtype: torch.dtype) -> Tensor:
        """What to add to scores: 0 where a token is seen. The same for every layer."""
        if dtype not in self._bias:
            device = self.places.device
            seen = self.visible
            if seen is None:
                seen = torch.ones(self.width, self.width, dtype=torch.bool, device=device).tril()
            self._bias[dtype] = torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(
                ~seen, torch.finfo(dtype).min
            )
        return self._bias[dtype]


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
            attn_mask=segments.visible,
            dropout_p=dropout,
            is_causal=segments.visible is None,
            scale=scaling,
        )
    return segments.gather(out), None


AttentionInterface.register(PADDING_FREE, padding_free_attention)
