"""Attention for sequences concatenated in one row, without padding.

Everything but attention works on each token alone, so only attention lays the sequences out (`segments`), and puts its
answers back into the row. Matrix products never see padding. In half precision on a GPU flash attention's kernel takes
sequences of unequal lengths as they are; elsewhere they are padded to the longest of the micro-batch. A prompt that
several sequences share is in the row once. In attention it asks once, too, and is seen by all of them, where that is
less work than a causal row for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.backends.cuda import is_flash_attention_available
from torch.nn import functional as F
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from steerboard_workers.alignment.segments import Grid, Segments, gather

PADDING_FREE = "steerboard_padding_free"
# On a CPU, plain matrix products take two thirds of the time of its flash attention, and half in bf16. They keep the
# attention weights, quadratic in length, so they are for short sequences.
PLAIN_ATTENTION_TOKENS = 512
# What flash attention's kernel is compiled for: sizes of a head, and GPUs from this compute capability on.
_HEAD_STEP, _LARGEST_HEAD = 8, 256
_CAPABILITY = (8, 0)


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
    """An attention function of transformers: query (1, heads, T, d), key and value (1, key heads, T, d) to
    (1, T, heads, d). Without `segments` it is its `sdpa`.

    Raises NotImplementedError for what only other attention functions compute.
    """
    if segments is None:
        attended: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options
        )
        return attended
    unknown = [name for name in ("softcap", "s_aux", "position_bias") if options.get(name) is not None]
    if unknown:
        raise NotImplementedError(f"padding-free attention does not support {', '.join(unknown)}")
    # For each grid that asks: itself, what it sees, and what to add to the scores of padded rows.
    parts = [(segments.first, segments.first, segments.causal)]
    if segments.further is not None:
        parts.append((segments.further.asking, segments.further.seen, segments.masked))
    dtype = _kernel_dtype(query, value, dropout)
    if dtype is not None:
        row = query.to(dtype), key.to(dtype), value.to(dtype)
        grids = [_attend_unpadded(*row, asking, seen, scaling) for asking, seen, _ in parts]
        return gather([asking.unpadded for asking, _, _ in parts], grids), None
    grids = []
    for place, (asking, seen, bias) in enumerate(parts):
        laid_out = asking.spread(query), seen.spread(key), seen.spread(value)
        grids.append(_attend(*laid_out, scaling, dropout, bias, causal=place == 0))
    return gather([asking for asking, _, _ in parts], grids), None


def takes_lengths(device: torch.device, dtype: torch.dtype, dim: int) -> bool:
    """Whether flash attention's kernel computes heads of `dim` there: it pads nothing."""
    if device.type != "cuda" or dtype not in (torch.bfloat16, torch.float16) or not is_flash_attention_available():
        return False
    return dim % _HEAD_STEP == 0 and dim <= _LARGEST_HEAD and torch.cuda.get_device_capability(device) >= _CAPABILITY


def _kernel_dtype(query: Tensor, value: Tensor, dropout: float) -> torch.dtype | None:
    """The dtype in which flash attention's kernel computes these, if it does."""
    # Rotary positions may have left float32 where autocast is on.
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else query.dtype
    dim = query.shape[-1]
    return dtype if not dropout and dim == value.shape[-1] and takes_lengths(query.device, dtype, dim) else None


def _attend_unpadded(
    query: Tensor, key: Tensor, value: Tensor, asking: Grid, seen: Grid, scaling: float | None
) -> Tensor:
    """(1, heads, T, dim) -> (1, heads, n, dim) of what asks. The last token that asks sees all of its row, the one
    before it all but one, and so on: behind prompts as well as in causal rows."""
    query, key, value = asking.unpadded.spread(query), seen.unpadded.spread(key), seen.unpadded.spread(value)
    key, value = _for_each_head(query, key, value)
    out = varlen_attn(
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        asking.unpadded.begins,
        seen.unpadded.begins,
        asking.unpadded.longest,
        seen.unpadded.longest,
        scale=scaling,
        window_size=(-1, 0),
    )
    assert isinstance(out, Tensor)  # what else is computed was not asked for
    return out.transpose(0, 1)[None]


def _for_each_head(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values that groups of heads share, once for each head."""
    groups = query.shape[1] // key.shape[1]
    return (key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)) if groups > 1 else (key, value)


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
    key, value = _for_each_head(query, key, value)
    short = key.shape[2] <= PLAIN_ATTENTION_TOKENS
    if query.device.type == "cpu" and short and not dropout:
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        scores = (query * scale) @ key.transpose(-1, -2) + bias(query.dtype)
        return scores.softmax(-1, dtype=torch.float32).to(query.dtype) @ value
    mask = None if causal else bias(query.dtype)
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scaling
    )


AttentionInterface.register(PADDING_FREE, padding_free_attention)
