"""Advantages, divergences and losses of policy gradients have the values of their papers, however a batch is split."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.policy_gradient import advantages as adv
from steerboard_workers.alignment.policy_gradient import clipping, kl, losses

NAN = float("nan")
THREE_OF_EIGHT = [[1, 1, 1, 0, 0, 0, 0, 0]]
# NeMo-RL's hand-worked numbers: old log-probs, new ones, and advantages of three tokens.
OLD, NEW, A = torch.tensor([-1.0, -1, -1]), torch.tensor([-1.69315, -1, -0.59453]), torch.tensor([1.0, -1, 2])

GROUPS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(2, 6)),
    elements=st.one_of(st.floats(-100, 100, width=32), st.just(NAN)),
)


# -- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "right", "wrong"),
    [(adv.standardised, 1.207612, -0.724567), (adv.centred, 0.625, -0.375), (adv.leave_one_out, 0.714286, -0.428571)],
)
def test_three_right_answers_of_eight(of, right, wrong):
    advantages = of(THREE_OF_EIGHT)
    assert advantages[0] == pytest.approx([right] * 3 + [wrong] * 5, abs=1e-6)


def test_rloo_is_the_reward_less_the_mean_of_the_others():
    rewards = np.array([[0.3, -1.2, 4.0, 2.2]])
    others = [np.delete(rewards[0], i).mean() for i in range(4)]
    np.testing.assert_allclose(adv.leave_one_out(rewards)[0], rewards[0] - others)


@settings(max_examples=60, deadline=None)
@given(GROUPS)
def test_an_unscored_answer_is_left_out_and_changes_nothing_for_the_others(rewards):
    for of in (adv.standardised, adv.centred, adv.leave_one_out):
        advantages = of(rewards)
        for group, out in zip(rewards, advantages, strict=True):
            scored = ~np.isnan(group)
            if scored.sum() < 2:
                assert np.isnan(out).all()
                continue
            assert np.isnan(out[~scored]).all()
            np.testing.assert_array_equal(out[scored], of(group[None, scored])[0])
            assert abs(out[scored].sum()) < 1e-6 * max(1, abs(group[scored]).max())


@settings(max_examples=40, deadline=None)
@given(GROUPS, st.integers(-50, 50))
def test_a_constant_added_to_the_rewards_of_a_group_changes_no_advantage(rewards, constant):
    np.testing.assert_allclose(adv.centred(rewards + constant), adv.centred(rewards), atol=1e-9)


@pytest.mark.parametrize("value", [0.1, 1 / 3, -1e8])
def test_a_group_of_equal_rewards_has_no_advantages_however_small_eps_is(value):
    assert (adv.standardised([[value] * 7], eps=1e-12) == 0).all()
    assert (adv.standardised([[value, value, NAN]], eps=1e-12)[0, :2] == 0).all()


def test_one_answer_a_prompt_is_refused():
    for of in (adv.standardised, adv.centred, adv.leave_one_out):
        with pytest.raises(BadInput, match="each prompt has only one") as refused:
            of([[1.0], [2.0]])
        assert refused.value.code == "one_answer"
    with pytest.raises(BadInput, match="infinite"):
        adv.standardised([[1.0, float("inf")]])
    with pytest.raises(ValueError, match="shape"):
        adv.leave_one_out([1.0, 2.0])


def test_several_rewards_are_compared_on_one_scale_before_they_are_added():
    correct, length = np.array([[1.0, 0, 1, 0], [0, 0, 1, 0]]), np.array([[10.0, 20, 30, 40], [5, 5, 5, 5]])
    expected = adv.standardised(correct) + 0.5 * adv.standardised(length)
    expected = (expected - expected.mean()) / expected.std(ddof=1)
    np.testing.assert_allclose(adv.decoupled([correct, length], [1.0, 0.5]), expected, rtol=1e-5)
    # Neither reward's unit matters.
    np.testing.assert_allclose(adv.decoupled([1000 * correct, length], [1.0, 0.5]), expected, rtol=1e-5)
    partly = length.copy()
    partly[0, 3] = NAN
    total = adv.decoupled([correct, partly], [1.0, 0.5])
    assert np.isnan(total).tolist() == [[False] * 3 + [True], [False] * 4]
    with pytest.raises(ValueError, match="2 rewards with 1 weights"):
        adv.decoupled([correct, length], [1.0])


# -- tokens -----------------------------------------------------------------------------------------------------------


def test_whitening_sees_the_tokens_of_the_whole_batch_and_nothing_else():
    x, mask = np.array([[1.0, 2, 99], [3, 7, NAN]]), np.array([[1, 1, 0], [1, 1, 1]])
    whitened = adv.whiten(x, mask)
    inside = whitened[[0, 0, 1, 1], [0, 1, 0, 1]]
    assert (inside.mean(), inside.std(ddof=1)) == (pytest.approx(0), pytest.approx(1, rel=1e-5))
    assert whitened[0, 2] == 99
    assert np.isnan(whitened[1, 2])
    kept = adv.whiten(x, mask, shift=False)[mask.astype(bool) & ~np.isnan(x)]
    assert kept.mean() == pytest.approx(3.25)
    assert adv.whiten([0.1, 0.1, 0.1]).tolist() == [0, 0, 0]
    assert adv.whiten([5.0]).tolist() == [0]


def test_returns_of_tokens_are_discounted_sums_of_what_follows():
    rewards, mask = adv.padded([[1.0, 2, 4], [8.0]])
    assert adv.token_returns(rewards, mask).tolist() == [[7, 6, 4], [8, 0, 0]]
    assert adv.token_returns(rewards, mask, gamma=0.5).tolist() == [[3, 4, 4], [8, 0, 0]]


def test_hand_worked_advantages_of_tokens():
    advantages, returns = adv.gae([0, 0, 5], [1, 2, 3], [1, 1, 1], 1.0, 0.0)
    assert advantages.tolist() == [1, 1, 2]
    assert returns.tolist() == [2, 3, 5]
    advantages, _ = adv.gae([0, 0, 0, 1], [0.5] * 4, [1] * 4, 1.0, 0.95)
    assert advantages == pytest.approx([0.428687, 0.45125, 0.475, 0.5], abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_advantages_of_tokens_with_lambda_1_are_returns_less_values_and_padding_is_not_there(data):
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    rewards, values = ([draw.normal(size=n) for n in lengths] for _ in range(2))
    gamma, lam = data.draw(st.sampled_from([0.9, 1.0])), data.draw(st.sampled_from([0.0, 0.95, 1.0]))
    (r, mask), (v, _) = adv.padded(rewards), adv.padded(values)
    r[~mask], v[~mask] = 7.0, NAN
    advantages, returns = adv.gae(r, v, mask, gamma, lam)
    np.testing.assert_allclose(
        adv.gae(r, v, mask, gamma, 1.0)[0], adv.token_returns(r, mask, gamma) - np.nan_to_num(v, nan=0) * mask
    )
    for row, n in enumerate(lengths):
        alone, own = adv.gae(rewards[row], values[row], np.ones(n), gamma, lam)
        np.testing.assert_allclose(advantages[row, :n], alone)
        np.testing.assert_allclose(returns[row, :n], own)
        assert not advantages[row, n:].any()
        assert not returns[row, n:].any()


def test_tokens_in_the_middle_that_are_nobodys_are_skipped():
    mask = np.array([1, 0, 0, 1, 1])
    rewards, values = np.array([1.0, 9, 9, 0, 2]), np.array([0.5, 7, 7, 1, 0.25])
    advantages, returns = adv.gae(rewards, values, mask, 0.9, 0.8)
    inside = mask.astype(bool)
    alone, own = adv.gae(rewards[inside], values[inside], np.ones(3), 0.9, 0.8)
    np.testing.assert_allclose(advantages[inside], alone)
    np.testing.assert_allclose(returns[inside], own)
    assert not advantages[~inside].any()


# -- divergences ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [("k1", [-1, 14, 29]), ("k2", [0.5, 98, 420.5]), ("k3", [0.7183, 13, 28])],
)
def test_hand_worked_divergences(estimator, expected):
    divergences = kl.estimate(torch.tensor([-1.0] * 3), torch.tensor([0.0, -15, -30]), estimator, limit=None)
    assert divergences.tolist() == pytest.approx(expected, abs=1e-4)


def test_a_log_ratio_is_bounded_before_it_is_exponentiated_and_reported_as_it_is():
    policy, reference = torch.tensor([-200.0, 0.0]), torch.tensor([0.0, -200.0])
    assert kl.estimate(policy, reference, "k1").tolist() == [-20, 20]
    assert torch.isfinite(kl.estimate(policy, reference, "k3")).all()
    assert kl.estimate(policy, reference, "k1", limit=None).tolist() == [-200, 200]
    assert losses.ratios(policy, reference).tolist() == pytest.approx([np.exp(-20), np.exp(20)])


def test_k1_and_k3_are_the_exact_divergence_on_average_and_the_gradient_of_k2_is_its_gradient():
    torch.manual_seed(0)
    logits, reference = torch.randn(5, dtype=torch.float64, requires_grad=True), torch.randn(5, dtype=torch.float64)
    log_pi, log_ref = logits.log_softmax(0), reference.log_softmax(0)
    exact = (log_pi.exp() * (log_pi - log_ref)).sum()
    pi = log_pi.exp().detach()
    for estimator in ("k1", "k3"):
        torch.testing.assert_close((pi * kl.estimate(log_pi, log_ref, estimator)).sum(), exact)
    assert (pi * kl.estimate(log_pi, log_ref, "k2")).sum().item() != pytest.approx(exact.item(), rel=1e-3)

    def gradient(value: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(value, logits, retain_graph=True)[0]

    torch.testing.assert_close(gradient((pi * kl.penalty(log_pi, log_ref, "k2")).sum()), gradient(exact))
    k3 = gradient((pi * kl.penalty(log_pi, log_ref, "k3")).sum())
    assert not torch.allclose(k3, gradient(exact), rtol=1e-2)
    with pytest.raises(ValueError, match="no effect"):
        kl.penalty(log_pi, log_ref, "k1")
    torch.testing.assert_close(gradient((pi * log_pi).sum()), torch.zeros(5, dtype=torch.float64))


# -- losses -----------------------------------------------------------------------------------------------------------


def reinforce(log_probs: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """-A log pi of each token (N,): what the gradient at ratio 1 is held to."""
    return -advantages * log_probs


def test_hand_worked_losses():
    ratio = losses.ratios(NEW, OLD)
    assert clipping.clipped_surrogate(ratio, A).mean().item() == pytest.approx(-0.6333, abs=1e-4)
    assert reinforce(torch.tensor([-0.5, -1, -1.5]), A).mean().item() == pytest.approx(0.8333, abs=1e-4)
    steep, weights = torch.tensor([1.0, -1, -4]), torch.tensor([0.5, 1, 10])
    assert clipping.clipped_surrogate(weights, steep, dual=3.0).mean().item() == pytest.approx(4.1667, abs=1e-4)
    assert clipping.clipped_surrogate(weights, steep).mean().item() == pytest.approx(40.5 / 3)
    whole = losses.sequence_ratios(NEW, OLD, torch.tensor([3.0]))
    assert clipping.clipped_surrogate(whole, A).mean().item() == pytest.approx(-0.6057, abs=1e-4)
    with pytest.raises(ValueError, match="above 1"):
        clipping.clipped_surrogate(ratio, A, dual=1.0)


def test_the_first_pass_over_new_answers_has_ratio_1_and_the_gradient_of_reinforce():
    log_probs = NEW.clone().requires_grad_()
    ratio = losses.ratios(log_probs, log_probs.detach())
    assert ratio.tolist() == [1, 1, 1]
    assert not clipping.clipped_tokens(ratio, A).any()
    (ours,) = torch.autograd.grad(clipping.clipped_surrogate(ratio, A).sum(), log_probs)
    (theirs,) = torch.autograd.grad(reinforce(log_probs, A).sum(), log_probs)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.2), (0.2, 0.28)])
def test_clipped_tokens_are_those_without_a_gradient(low, high):
    ratio = torch.tensor([0.5, 0.85, 1.25, 1.5] * 2, requires_grad=True)
    a = torch.tensor([1.0] * 4 + [-1.0] * 4)
    (gradient,) = torch.autograd.grad(clipping.clipped_surrogate(ratio, a, low, high).sum(), ratio)
    assert clipping.clipped_tokens(ratio, a, low, high).tolist() == (gradient == 0).tolist()
    assert clipping.clipped_tokens(ratio, a, low, high).tolist()[2] == (high == 0.2)


def test_a_critic_gains_nothing_by_leaving_the_clip_towards_the_return():
    values, returns, old = torch.tensor([0.5, 2.0]), torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0])
    assert losses.value_loss(values, returns).tolist() == [0.125, 2.0]
    assert losses.value_loss(values, returns, old, clip=0.2).tolist() == pytest.approx([0.32, 2.0])


@pytest.mark.parametrize(
    ("reducer", "expected"), [("token", 10 / 4), ("sequence", (2 + 4) / 2), ("constant", 10 / 8 / 2)]
)
def test_reducers_weigh_long_answers_as_they_are_meant_to(reducer, expected):
    tokens, counts = torch.tensor([1.0, 2, 3, 4]), torch.tensor([3.0, 1.0])
    total = losses.reduced(tokens, counts, reducer, 8)
    assert total.item() / losses.reduced_count([3, 1], reducer) == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=6), st.data())
def test_splitting_a_batch_changes_neither_loss_nor_gradient(lengths, data):
    torch.manual_seed(sum(lengths))
    log_probs = (-torch.rand(sum(lengths))).requires_grad_()
    old, a = log_probs.detach() + 0.4 * torch.randn(sum(lengths)), torch.randn(sum(lengths))
    cut = data.draw(st.integers(1, len(lengths) - 1))

    def loss(sequences: slice, reducer: losses.Reducer, whole_sequences: bool) -> torch.Tensor:
        counts = torch.tensor(lengths[sequences], dtype=torch.float32)
        start = sum(lengths[: sequences.start or 0])
        part = slice(start, start + int(counts.sum()))
        of = losses.sequence_ratios(log_probs[part], old[part], counts) if whole_sequences else None
        of = losses.ratios(log_probs[part], old[part]) if of is None else of
        surrogate = clipping.clipped_surrogate(of, a[part])
        return losses.reduced(surrogate, counts, reducer, 5) / losses.reduced_count(lengths, reducer)

    for reducer, whole in itertools.product(("token", "sequence", "constant"), (False, True)):
        whole_loss = loss(slice(0, None), reducer, whole)
        two = loss(slice(0, cut), reducer, whole) + loss(slice(cut, None), reducer, whole)
        torch.testing.assert_close(whole_loss, two)
        gradients = [torch.autograd.grad(each, log_probs)[0] for each in (whole_loss, two)]
        torch.testing.assert_close(*gradients)


def test_a_reducer_without_its_length_is_refused():
    with pytest.raises(ValueError, match="length"):
        losses.reduced(torch.ones(2), torch.tensor([2.0]), "constant")


# -- the policy gradient on average, over every group of answers ------------------------------------------------------


@pytest.mark.parametrize(("name", "unbiased"), [("leave_one_out", True), ("centred", False), ("standardised", False)])
def test_leaving_one_out_gives_the_gradient_of_the_expected_reward_and_a_standard_deviation_does_not(name, unbiased):
    """Three answers of one token; the group has two draws. The loss is the mean over them."""
    logits = torch.tensor([0.2, -0.5, 1.0], dtype=torch.float64, requires_grad=True)
    rewards = np.array([10.0, 0.0, 11.0])
    log_pi = logits.log_softmax(0)
    exact = -torch.autograd.grad((log_pi.exp() * torch.from_numpy(rewards)).sum(), logits, retain_graph=True)[0]
    total = torch.zeros(3, dtype=torch.float64)
    for drawn in itertools.product(range(3), repeat=2):
        chance = log_pi[list(drawn)].sum().exp().detach()
        weights = torch.from_numpy(getattr(adv, name)(rewards[None, list(drawn)])[0])
        loss = reinforce(log_pi[list(drawn)], weights).mean()
        total += chance * torch.autograd.grad(loss, logits, retain_graph=True)[0]
    cosine = torch.nn.functional.cosine_similarity(total, exact, dim=0).item()
    if unbiased:
        torch.testing.assert_close(total, exact)
    elif name == "centred":  # (k - 1) / k of it: the baseline has a share of the answer itself
        torch.testing.assert_close(total, exact / 2)
    else:
        assert cosine < 0.98
