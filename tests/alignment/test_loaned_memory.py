"""Memory on loan: never twice at once, taken again when it is free, and no more than the largest ever asked for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from steerboard_workers.alignment import scratch
from steerboard_workers.alignment.head import read_head
from steerboard_workers.alignment.scratch import Loan

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def all_on_loan(monkeypatch):
    monkeypatch.setattr(scratch, "LARGE", 0)
    scratch._free.clear()
    yield
    scratch._free.clear()


def place(loan: Loan) -> int:
    return loan.tensor.untyped_storage().data_ptr()


def test_what_is_given_back_is_taken_again_and_what_is_not_is_not():
    first = Loan((4, 1000), torch.float32, CPU)
    second = Loan((4, 1000), torch.float32, CPU)
    assert place(first) != place(second)
    was = place(first)
    del first
    again = Loan((1999,), torch.bfloat16, CPU)
    assert (place(again), again.tensor.shape, again.tensor.dtype) == (was, (1999,), torch.bfloat16)


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=30))
def test_one_after_the_other_needs_no_more_than_the_largest_and_a_quarter(sizes):
    scratch._free.clear()
    for size in sizes:
        loan = Loan((size,), torch.uint8, CPU)
        assert len(loan.tensor) == size
        del loan
        assert sum(len(whole) for whole in scratch._free) <= max(4, 1.25 * max(sizes))


def test_small_tensors_are_not_kept(monkeypatch):
    monkeypatch.setattr(scratch, "LARGE", 1 << 20)
    Loan((1000,), torch.float32, CPU)
    assert not scratch._free


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_two_forwards_before_their_backwards_do_not_share_logits(dtype):
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 30, bias=False)
    hidden, labels = torch.randn(2, 5, 8), torch.randint(30, (2, 5))

    def loss(which: int) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16):
            return read_head(head, hidden[which], labels[which])[0].sum()

    apart = [torch.autograd.grad(loss(which), head.weight)[0] for which in range(2)]
    losses = [loss(0), loss(1)]
    with torch.no_grad():
        loss(0)
    together = [torch.autograd.grad(loss, head.weight)[0] for loss in losses]
    assert all(torch.equal(*pair) for pair in zip(apart, together, strict=True))


def test_a_second_backward_computes_the_logits_again():
    head = torch.nn.Linear(8, 30, bias=False)
    total = read_head(head, torch.randn(5, 8), torch.arange(5))[0].sum()
    first, second = (torch.autograd.grad(total, head.weight, retain_graph=True)[0] for _ in range(2))
    torch.testing.assert_close(first, second)
