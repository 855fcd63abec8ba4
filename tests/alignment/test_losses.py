"""Closed forms of the five methods' losses (METHODS.md, last column)."""

from __future__ import annotations

import itertools
import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steerboard_contracts.methods.reward_model import RewardModelConfig
from steerboard_contracts.online.reward_weights import exponential_weight
from steerboard_workers.alignment import head
from steerboard_workers.alignment.batches.order import Order, Together, cosine_with_warmup
from steerboard_workers.alignment.head import read_head, read_logits
from steerboard_workers.alignment.losses import correlation, effective_sample_size, weighted_nll
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.methods.reward_model import bradley_terry
from steerboard_workers.alignment.rendering.render import RenderedGroup


def test_uniform_logits_cost_ln_vocabulary_a_token():
    log_probs, correct = read_logits(torch.zeros(7, 100), torch.arange(7))
    loss = weighted_nll(log_probs, torch.zeros(7, dtype=torch.long), torch.ones(1))
    assert loss.item() / 7 == pytest.approx(math.log(100), rel=1e-6)
    assert correct.all()  # nothing is likelier


def test_log_probs_are_computed_in_float32_whatever_the_logits_are():
    logits = torch.randn(5, 50, generator=torch.Generator().manual_seed(0)).bfloat16()
    log_probs, _ = read_logits(logits, torch.arange(5))
    assert log_probs.dtype == torch.float32
    exact = logits.double().log_softmax(-1)[torch.arange(5), torch.arange(5)]
    torch.testing.assert_close(log_probs.double(), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_label_log_probs_have_cross_entropys_values_and_gradient(dtype, monkeypatch):
    monkeypatch.setattr(head, "BLOCK_ELEMENTS", 3 * 40)  # several blocks, the last one smaller
    draw = torch.Generator().manual_seed(1)
    logits = (5 * torch.randn(11, 40, generator=draw)).to(dtype)
    labels = torch.randint(40, (11,), generator=draw)
    weights = torch.randn(11, generator=draw)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    values, correct = read_logits(ours, labels)
    expected = -torch.nn.functional.cross_entropy(theirs.float(), labels, reduction="none")
    torch.testing.assert_close(values, expected)
    assert correct.tolist() == (logits.argmax(-1) == labels).tolist()
    (values * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("entropic", [False, True])
def test_a_head_read_by_chunks_gives_the_same_values_and_gradients(monkeypatch, dtype, biased, temperature, entropic):
    monkeypatch.setattr(head, "CPU_CHUNK_ELEMENTS", 4 * 40)  # three chunks, the last one smaller
    monkeypatch.setattr(head, "BLOCK_ELEMENTS", 3 * 40)
    draw = torch.Generator().manual_seed(1)
    layer = torch.nn.Linear(16, 40, bias=biased)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=draw)
    labels = torch.randint(40, (11,), generator=draw)
    weights = torch.randn(2, 11, generator=draw)

    def read(how) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        hidden = torch.randn(11, 16, generator=torch.Generator().manual_seed(2)).requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16):
            log_probs, correct, *entropies = how(hidden)
        loss = (log_probs * weights[0]).sum() + sum((entropy * weights[1]).sum() for entropy in entropies)
        gradients = torch.autograd.grad(loss, [hidden, *layer.parameters()])
        assert all(gradient.dtype is torch.float32 for gradient in gradients)
        return [log_probs, correct, *entropies], list(gradients)

    values, gradients = read(lambda hidden: read_head(layer, hidden, labels, temperature, entropic))
    expected, known = read(lambda hidden: read_logits(layer(hidden), labels, temperature, entropic))
    torch.testing.assert_close(values, expected, rtol=1e-5, atol=1e-5)
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    torch.testing.assert_close(gradients, known, **close)


@pytest.mark.parametrize("entropic", [False, True])
def test_a_temperature_divides_the_logits(entropic):
    logits = (3 * torch.randn(5, 20, generator=torch.Generator().manual_seed(3))).requires_grad_()
    labels = torch.arange(5)
    ours = read_logits(logits, labels, 0.5, entropic)
    theirs = (logits / 0.5).log_softmax(-1)
    expected = [theirs[torch.arange(5), labels], *([-(theirs.exp() * theirs).sum(-1)] if entropic else [])]
    values = [ours[0], *ours[2:]]
    torch.testing.assert_close(values, expected)
    gradients = [torch.autograd.grad(sum(x.sum() for x in some), logits)[0] for some in (values, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_a_zero_head_costs_ln_2_a_pair():
    assert bradley_terry(torch.zeros(3), torch.zeros(3)).item() / 3 == pytest.approx(math.log(2))


@given(margin=st.floats(-20, 20))
@settings(max_examples=50)
def test_a_margin_at_zero_difference_costs_softplus(margin):
    loss = bradley_terry(torch.zeros(1).double(), torch.zeros(1).double(), torch.tensor([margin]).double())
    assert loss.item() == pytest.approx(math.log1p(math.exp(-abs(margin))) + max(margin, 0.0))


@given(shift=st.floats(-50, 50))
@settings(max_examples=50)
def test_adding_a_constant_to_all_rewards_changes_nothing(shift):
    chosen, rejected = torch.tensor([0.3, -1.0]).double(), torch.tensor([0.1, 2.0]).double()
    assert bradley_terry(chosen + shift, rejected + shift).item() == pytest.approx(
        bradley_terry(chosen, rejected).item(), rel=1e-9
    )


def test_the_centring_term_is_the_squared_sum():
    plain = bradley_terry(torch.tensor([2.0]), torch.tensor([1.0]))
    centred = bradley_terry(torch.tensor([2.0]), torch.tensor([1.0]), centre=0.5)
    assert (centred - plain).item() == pytest.approx(0.5 * 9)


def test_rwr_weights_at_beta_5_span_what_the_paper_has():
    weights = [exponential_weight(z, 5.0, 20.0) for z in (-2.5, 0.0, 2.5)]
    assert weights == pytest.approx([0.6065, 1.0, 1.6487], abs=1e-4)
    assert effective_sample_size(weights) == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights) / 3)


def test_rwr_weights_are_clipped_and_never_overflow():
    assert exponential_weight(1e9, 0.1, 20.0) == 20.0
    assert math.isfinite(exponential_weight(1e9, 0.1, None))


def test_equal_weights_have_full_effective_sample_size():
    assert effective_sample_size([0.7] * 9) == pytest.approx(1.0)


def test_correlation_from_sums_is_pearsons():
    x, y = torch.randn(2, 50, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ours = correlation(50, *(v.item() for v in (x.sum(), y.sum(), (x * x).sum(), (y * y).sum(), (x * y).sum())))
    assert ours == pytest.approx(torch.corrcoef(torch.stack([x, y]))[0, 1].item())
    assert correlation(3, 3.0, 6.0, 3.0, 14.0, 6.0) == 0.0  # a variable that does not vary


@given(n=st.integers(1, 40), batch=st.integers(1, 17), epochs=st.integers(1, 3), seed=st.integers(0, 5))
@settings(max_examples=80, deadline=None)
def test_every_sample_comes_once_an_epoch(n, batch, epochs, seed):
    order = Order(n, batch, epochs, seed)
    seen = [i for step in range(order.steps) for i in order.step(step)]
    assert len(seen) == n * epochs
    for epoch in range(epochs):
        assert sorted(seen[epoch * n : (epoch + 1) * n]) == list(range(n))


@given(
    n=st.integers(1, 40),
    batch=st.integers(1, 17),
    epochs=st.sampled_from([0.2, 0.5, 1, 2]),
    seed=st.integers(0, 5),
    steps=st.integers(1, 6),
)
@settings(max_examples=80, deadline=None)
def test_the_samples_of_the_first_steps_are_known_beforehand(n, batch, epochs, seed, steps):
    order = Order(n, batch, epochs, seed)
    first = order.first(steps)
    assert len(set(first)) == len(first)
    assert set(first) == {i for step in range(min(steps, order.steps)) for i in order.step(step)}


@given(rows=st.lists(st.integers(0, 12), min_size=1, max_size=30), seed=st.integers(0, 5))
@settings(max_examples=80, deadline=None)
def test_samples_of_one_row_follow_each_other(rows, seed):
    order = Order(len(rows), 4, 2, seed, Together.by(rows))
    seen = [i for step in range(order.steps) for i in order.step(step)]
    for epoch in (seen[: len(rows)], seen[len(rows) :]):
        assert sorted(epoch) == list(range(len(rows)))
        drawn = [rows[i] for i in epoch]
        assert len([row for row, _ in itertools.groupby(drawn)]) == len(set(rows))


def test_rows_of_one_sample_each_are_drawn_as_if_nothing_were_together():
    assert Together.by(range(9, 0, -1)) is None


def test_each_epoch_and_seed_has_an_order_of_its_own():
    first, second = Order(50, 50, 2, 0).step(0), Order(50, 50, 2, 0).step(1)
    assert first != second
    assert first != Order(50, 50, 2, 1).step(0)
    assert first == Order(50, 50, 2, 0).step(0)


def test_the_schedule_warms_up_to_the_peak_and_ends_at_its_minimum():
    factors = [cosine_with_warmup(step, 100, 0.1, 0.1) for step in range(100)]
    assert factors[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert factors[10] == pytest.approx(1.0)
    assert factors[-1] == pytest.approx(0.1, abs=1e-3)
    assert all(a >= b for a, b in pairwise(factors[10:]))


def test_a_reward_model_leaves_out_pairs_that_teach_nothing_and_counts_them():
    """Ties are learned: their margin is a label as any other."""
    pairs = [("a", "b"), ("a", "a "), ("", "b"), ("a", "b")]
    rows = [{"chosen": c, "rejected": r, "split": "train", "half": "ab"[n > 2]} for n, (c, r) in enumerate(pairs)]
    rows[0]["margin"] = 0.0
    method = training_of(RewardModelConfig(method="reward_model"))
    selection = method.select(rows, None)
    assert selection.rows == [rows[0], rows[3]]
    cut = RenderedGroup([1, 2], [False] * 2, [[5, 6], [5, 6]], truncated=True)
    assert method.example(0, rows[0], cut) is None
    counts = method.summary({}, 0)
    assert {name: counts[name] for name in ("empty_pairs", "equal_pairs", "tied_pairs")} == {
        "empty_pairs": 1,
        "equal_pairs": 2,
        "tied_pairs": 1,
    }
    assert selection.notes == ["left out: 1 pairs with an empty side, 1 with equal ones; 1 have margin 0"]
    half = training_of(RewardModelConfig(method="reward_model", half="b")).select(rows, None)
    assert (len(half.rows), half.notes) == (1, [])
