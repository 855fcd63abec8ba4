"""A critic's advantages of tokens, and the loss by which it learns with its policy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from steerboard_contracts.methods.ppo import PpoConfig
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.methods.ppo import learned_scale
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.policy_gradient.critic import judged, token_rewards
from steerboard_workers.phases import Phases

NAN = float("nan")


def test_the_reward_comes_with_the_last_token_and_the_divergence_with_each():
    apart = [np.array([0.5, -1.0, 2.0]), np.array([0.0]), np.array([500.0, 0.0])]
    placed = Answers(np.array([[3.0], [-1.0], [0.0]]), apart).placed
    rewards = token_rewards(placed, apart, 0.1)
    np.testing.assert_allclose(np.concatenate(rewards), [-0.05, 0.1, 2.8, -1.0, -2.0, 0.0])
    assert apart[0].tolist() == [0.5, -1.0, 2.0]


def test_advantages_are_whitened_over_all_tokens_and_returns_are_not():
    rewards, values = [np.array([0.0, 0, 5]), np.array([1.0])], [np.array([1.0, 2, 3]), np.array([0.0])]
    judgement = judged(rewards, values, 1.0, 0.0)
    assert [returns.tolist() for returns in judgement.returns] == [[2, 3, 5], [1]]
    raw = np.array([1.0, 1, 2, 1])
    np.testing.assert_allclose(np.concatenate(judgement.advantages), (raw - raw.mean()) / (raw.std(ddof=1) + 1e-6))
    # Returns 2, 3, 5, 1 have the variance 2.1875, what is left of them 1, 1, 2, 1 has 0.1875.
    assert judgement.explained_variance == pytest.approx(1 - 0.1875 / 2.1875)


def test_a_critic_that_knows_the_returns_explains_all_and_one_that_knows_their_mean_nothing():
    rewards = [np.array([0.0, 1.0]), np.array([0.0, 3.0])]
    assert judged(rewards, [np.ones(2), np.full(2, 3.0)], 1.0, 1.0).explained_variance == 1
    assert judged(rewards, [np.full(2, 2.0)] * 2, 1.0, 1.0).explained_variance == 0


def test_an_answer_without_a_reward_changes_nothing_for_the_others():
    rewards, values = [np.array([0.0, 1.0]), np.array([2.0])], [np.array([0.3, 0.2]), np.array([0.1])]
    whole = judged(rewards, values, 1.0, 0.95)
    more = judged([*rewards, np.array([0.0, NAN])], [*values, np.ones(2)], 1.0, 0.95)
    assert np.isnan(more.advantages[2]).all()
    for one, other in zip(whole.advantages, more.advantages, strict=False):
        np.testing.assert_array_equal(one, other)
    assert more.explained_variance == whole.explained_variance


# -- the loss of both -------------------------------------------------------------------------------------------------


def batch_of(lengths: list[int], weight: float = 1.0) -> SimpleNamespace:
    draw = torch.Generator().manual_seed(sum(lengths))
    names = ("old_log_probs", "advantages", "returns", "values", "reference_log_probs")
    tokens = {name: torch.randn(sum(lengths), generator=draw) for name in names}
    counts = torch.tensor(lengths, dtype=torch.float32)
    return SimpleNamespace(token_values=tokens, label_counts=counts, weights=torch.full((len(lengths),), weight))


def loss_of(batch: SimpleNamespace, **config) -> tuple[torch.Tensor, dict[str, float], dict[str, torch.Tensor]]:
    """(loss, metrics, gradients) of log-probs and values that moved since the answers were sampled."""
    method = training_of(PpoConfig(method="ppo", **config))
    method.turn.first = False
    given = batch.token_values
    log_probs = (given["old_log_probs"] + 0.05 * given["advantages"]).requires_grad_()
    values = (given["values"] + 0.4).requires_grad_()
    objective = method.objective()
    loss, sums = objective.forward({"model": (log_probs, None), "critic": values}, batch)
    loss.backward()
    metrics = objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))
    return loss.detach(), metrics, {"policy": log_probs.grad, "critic": values.grad}


@pytest.mark.parametrize("reducer", ["token", "sequence", "constant"])
def test_of_answers_of_weight_0_the_critic_alone_learns(reducer):
    _, metrics, both = loss_of(batch_of([3, 1, 4]), reducer=reducer, value_weight=0.5)
    warmed, alone_metrics, alone = loss_of(batch_of([3, 1, 4], weight=0.0), reducer=reducer, value_weight=0.5)
    assert not alone["policy"].any()
    assert both["policy"].any()
    torch.testing.assert_close(alone["critic"], both["critic"])
    assert alone_metrics["value_loss"] == metrics["value_loss"]
    counted = 8 if reducer == "token" else 3
    assert 0.5 * metrics["value_loss"] == pytest.approx(warmed.item() / counted) == alone_metrics["loss"]


def test_the_loss_of_a_critic_is_that_of_the_returns_within_its_clip():
    batch = batch_of([2, 2])
    given = batch.token_values
    for clip in (None, 0.1):
        _, metrics, _ = loss_of(batch, value_clip=clip)
        free = (given["values"] + 0.4 - given["returns"]).square() / 2
        near = (given["values"] + 0.1 - given["returns"]).square() / 2
        expected = free if clip is None else torch.maximum(free, near)
        assert metrics["value_loss"] == pytest.approx(expected.mean().item(), rel=1e-5)


def test_a_reward_models_values_are_brought_to_the_scale_of_the_rewards_that_are_learned():
    """The rewards are those of one reward model and a rule, normalised, less a penalty for length: where the critic
    gives an answer its own reward, and the others are the same for all, it knows what is learned."""
    given, rule, penalty = np.array([[1.0], [4.0], [-2.0]]), np.full((3, 1), 5.0), np.full((3, 1), -0.25)
    mean, divisor = 2.0, 3.0
    learned = (2 * given + 0.5 * rule - mean) / divisor + penalty
    sources = {"model": given, "regex": rule, "unused": np.full((3, 1), NAN), "length": penalty}
    weights = {"model": 2.0, "regex": 0.5, "unused": 0.0, "length": 1.0}
    answers = Answers(learned, [np.zeros(1)] * 3, sources, weights, (mean, divisor))
    examples = [Example(row, np.arange(3), (np.arange(1),)) for row in range(3)]
    passes = SimpleNamespace(per_label=lambda examples, model: [[value.astype(np.float32)] for value in given])
    for role, explained in (("reward", 1.0), ("critic", 1.0), ("policy", None)):
        method = training_of(PpoConfig(method="ppo", kl_weight=0))
        context = SimpleNamespace(phases=Phases(), passes=passes, started_as={"critic": role})
        judgement = method.judge(0, answers, examples, context)
        values = np.concatenate(judgement.further["values"])
        np.testing.assert_allclose(values, (learned if explained else given).reshape(-1))
        # It stays: a later sampling has other moments.
        again = Answers(learned, [np.zeros(1)] * 3, sources, weights, (0.0, 9.0))
        later = method.judge(1, again, examples, context).further["values"]
        np.testing.assert_array_equal(np.concatenate(later), values)
    alone = Answers(given, [np.zeros(1)] * 3, {"model": given, "regex": rule}, {"model": 0.0, "regex": 1.0})
    assert learned_scale(alone) == (1.0, 0.0)


def test_the_loss_of_values_is_in_that_scale():
    batch = batch_of([3, 2])
    method = training_of(PpoConfig(method="ppo", value_clip=None))
    method.turn.values = (-2.0, 0.5)
    values = torch.linspace(-1, 1, 5).requires_grad_()
    objective = method.objective()
    _, sums = objective.forward({"model": (batch.token_values["old_log_probs"], None), "critic": values}, batch)
    figures = dict(zip(objective.measures, sums.tolist(), strict=True))
    expected = (-2 * values + 0.5 - batch.token_values["returns"]).square().sum() / 2
    assert figures["value_loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_warming_up_is_of_the_first_samplings():
    method = training_of(PpoConfig(method="ppo", critic_warmup=2))
    answers = Answers(np.array([[1.0], [2.0]]), [np.zeros(2), np.zeros(1)])
    examples = [Example(row, np.arange(3), (np.arange(n),)) for row, n in enumerate((2, 1))]
    passes = SimpleNamespace(per_label=lambda given, model: [[np.full(e.labels, 0.5, np.float32)] for e in given])
    context = SimpleNamespace(phases=Phases(), passes=passes, started_as={})
    judgements = [method.judge(number, answers, examples, context) for number in range(3)]
    assert [judgement.weight for judgement in judgements] == [0, 0, 1]
    assert judgements[0].metrics["value"] == 0.5
    assert context.phases.take()["value_tokens"] == 3 * 9
