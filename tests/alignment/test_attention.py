"""Attention without padding gives each sequence what it gets alone, and its gradient, however short its response is."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from steerboard_workers.alignment import attention
from steerboard_workers.alignment.attention import padding_free_attention
from steerboard_workers.alignment.batches.rows import Row, segments
from steerboard_workers.alignment.examples import Example

HEADS, KEY_HEADS, DIM = 4, 2, 8


def row(prompt: int, *responses: int) -> Row:
    ids = [np.zeros(length, dtype=np.int32) for length in (prompt, *responses)]
    example = Example(0, ids[0], tuple(ids[1:]))
    return Row.of([(example, number) for number in range(len(responses))])


def alone(rows: list[Row], query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """(T, heads, dim): each sequence by itself; of a shared prompt, what its first one gets."""
    out, start = torch.zeros(query.shape[2], HEADS, DIM), 0
    for row in rows:
        for branch in reversed(row.branches):
            begin = start + branch.offset
            places = torch.cat([torch.arange(start, start + row.prompt), torch.arange(begin, begin + branch.length)])
            attended = F.scaled_dot_product_attention(
                query[:, :, places],
                key[:, :, places].repeat_interleave(HEADS // KEY_HEADS, 1),
                value[:, :, places].repeat_interleave(HEADS // KEY_HEADS, 1),
                is_causal=True,
            )
            out = out.index_copy(0, places, attended[0].transpose(0, 1))
        start += len(row.ids)
    return out


def by_sequence(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    asking: torch.Tensor,
    seen: torch.Tensor,
    most_asking: int,
    most_seen: int,
    *,
    scale: float | None,
    window_size: tuple[int, int],
) -> torch.Tensor:
    """What flash attention's kernel computes, (T, heads, dim), with plain operations."""
    assert window_size == (-1, 0)
    attended = []
    for (begin, end), (first, last) in zip(pairwise(asking.tolist()), pairwise(seen.tolist()), strict=True):
        assert end - begin <= min(most_asking, last - first)
        assert last - first <= most_seen
        seen_by = torch.ones(end - begin, last - first, dtype=torch.bool).tril(last - first - end + begin)
        parts = (query[begin:end], key[first:last], value[first:last])
        laid_out = (part.transpose(0, 1)[None] for part in parts)
        attended.append(F.scaled_dot_product_attention(*laid_out, attn_mask=seen_by, scale=scale)[0].transpose(0, 1))
    return torch.cat(attended)


KINDS_OF_ROWS = pytest.mark.parametrize(
    ("rows", "apart"),
    [
        ([row(20, 3, 2, 4), row(12, 5), row(17, 1, 1)], True),
        ([row(4, 9, 12), row(6, 3)], False),
        ([row(9, 4), row(3, 3)], False),
        ([row(150, 40, 20), row(90, 60, 100, 130)], False),
    ],
    ids=["short", "long", "single", "blocks"],
)


def check(rows: list[Row], apart: bool, device: str, dtype: torch.dtype, **tolerance: float) -> None:
    """Outputs and gradients of `dtype` against float32's."""
    lengths = [len(row.ids) for row in rows]
    given = segments(rows, np.concatenate([[0], np.cumsum(lengths)[:-1]]))
    assert (given.further is not None) == apart
    torch.manual_seed(0)
    shapes = [(1, heads, sum(lengths), DIM) for heads in (HEADS, KEY_HEADS, KEY_HEADS)]
    expected = [torch.randn(shape, requires_grad=True) for shape in shapes]
    tensors = [tensor.detach().to(device, dtype).requires_grad_() for tensor in expected]
    ours, _ = padding_free_attention(SimpleNamespace(), *tensors, None, segments=given.to(torch.device(device)))
    theirs = alone(rows, *expected)
    torch.testing.assert_close(ours[0].float().cpu(), theirs, **tolerance)
    weights = torch.randn(theirs.shape)
    (ours[0] * weights.to(device, dtype)).sum().backward()
    (theirs * weights).sum().backward()
    for one, other in zip(tensors, expected, strict=True):
        torch.testing.assert_close(one.grad.float().cpu(), other.grad, **tolerance)


@KINDS_OF_ROWS
def test_every_sequence_gets_what_it_gets_alone(rows: list[Row], apart: bool) -> None:
    check(rows, apart, "cpu", torch.float32)


@KINDS_OF_ROWS
def test_in_half_precision_it_gets_about_that(rows: list[Row], apart: bool) -> None:
    check(rows, apart, "cpu", torch.bfloat16, rtol=5e-2, atol=5e-2)


@KINDS_OF_ROWS
def test_padded_rows_give_the_same(rows: list[Row], apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "PLAIN_ATTENTION_TOKENS", 0)
    check(rows, apart, "cpu", torch.float32)


@KINDS_OF_ROWS
def test_rows_of_their_own_lengths_give_the_same(rows: list[Row], apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "PLAIN_ATTENTION_TOKENS", 0)
    monkeypatch.setattr(attention, "_kernel_dtype", lambda *_: torch.float32)
    monkeypatch.setattr(attention, "varlen_attn", by_sequence)
    check(rows, apart, "cpu", torch.float32)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="flash attention's kernel needs a GPU")
@KINDS_OF_ROWS
def test_the_kernel_of_a_gpu_gives_the_same(rows: list[Row], apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_attend", None)  # the padded way is not taken
    check(rows, apart, "cuda", torch.bfloat16, rtol=5e-2, atol=5e-2)
