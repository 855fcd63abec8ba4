"""Attention without padding gives each sequence what it gets alone, and its gradient, however short its response is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

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
    for one in rows:
        for branch in reversed(one.branches):
            begin = start + branch.offset
            places = torch.cat([torch.arange(start, start + one.prompt), torch.arange(begin, begin + branch.length)])
            found = F.scaled_dot_product_attention(
                query[:, :, places],
                key[:, :, places].repeat_interleave(HEADS // KEY_HEADS, 1),
                value[:, :, places].repeat_interleave(HEADS // KEY_HEADS, 1),
                is_causal=True,
            )
            out = out.index_copy(0, places, found[0].transpose(0, 1))
        start += len(one.ids)
    return out


@pytest.mark.parametrize(
    ("rows", "apart"),
    [
        ([row(20, 3, 2, 4), row(12, 5), row(17, 1, 1)], True),
        ([row(4, 9, 12), row(6, 3)], False),
        ([row(9, 4), row(3, 3)], False),
    ],
    ids=["short", "long", "single"],
)
def test_every_sequence_gets_what_it_gets_alone(rows: list[Row], apart: bool) -> None:
    lengths = [len(one.ids) for one in rows]
    given = segments(rows, np.concatenate([[0], np.cumsum(lengths)[:-1]]))
    assert (given.further is not None) == apart
    torch.manual_seed(0)
    shapes = [(1, heads, sum(lengths), DIM) for heads in (HEADS, KEY_HEADS, KEY_HEADS)]
    found, expected = ([torch.randn(shape, requires_grad=True) for shape in shapes] for _ in range(2))
    with torch.no_grad():
        for one, other in zip(found, expected, strict=True):
            other.copy_(one)
    ours, _ = padding_free_attention(SimpleNamespace(), *found, None, segments=given)
    theirs = alone(rows, *expected)
    torch.testing.assert_close(ours[0], theirs)
    weights = torch.randn(theirs.shape)
    (ours[0] * weights).sum().backward()
    (theirs * weights).sum().backward()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.grad, other.grad)
