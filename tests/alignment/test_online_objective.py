"""The objective of online methods: its terms, and the policies that it ends in."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from online_rewards import config_of

from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.methods.ppo import CRITIC, PpoObjective
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.objective import (
    ADVANTAGES,
    OLD,
    REFERENCE,
    SAMPLER_WEIGHTS,
    PolicyGradientObjective,
    RatioDiffers,
    Turn,
)
from steerboard_workers.alignment.rollouts import SourceContext
from steerboard_workers.phases import Phases
from steerboard_workers.stages.training.update import added


def test_dual_clip_and_asymmetric_clip_reach_the_loss_through_the_objective():
    """NeMo-RL's hand-worked numbers: ratios .5, 1 and 10."""
    ids = np.arange(1, 4, dtype=np.int32)
    old = np.full(3, -1.0, np.float32)
    values = {OLD: (old,), ADVANTAGES: (np.array([1.0, -1.0, -4.0], np.float32),)}
    batch = Batcher("packed", "labels", 64, 0).collate([Example(0, ids[:1], (ids,), token_values=values)])
    log_probs = torch.from_numpy(old) + torch.tensor([0.5, 1.0, 10.0]).log()
    objective = PolicyGradientObjective(config_of(dual_clip=3.0, reducer="token"), Turn(False), 8)
    example = [Example(0, ids[:1], (ids,), token_values=values)]
    loss, sums = objective.forward((log_probs, None), batch)
    assert loss.item() / objective.count(example) == pytest.approx(4.1667, abs=1e-4)
    assert objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))["clip_share"] == pytest.approx(
        1 / 3
    )
    # A token of ratio 10 and advantage -4 has a gradient without the bound and none with it.
    unbounded = PolicyGradientObjective(config_of(reducer="token"), Turn(False), 8)
    _, sums = unbounded.forward((log_probs, None), batch)
    assert unbounded.metrics(dict(zip(unbounded.measures, sums.tolist(), strict=True)))["clip_share"] == 0
    constant = PolicyGradientObjective(config_of(dual_clip=3.0), Turn(False), 8)
    loss, _ = constant.forward((log_probs, None), batch)
    assert loss.item() / constant.count(example) == pytest.approx(12.5 / 8, abs=1e-4)


def test_the_entropy_of_each_token_lowers_the_loss_by_its_weight():
    answer = np.arange(1, 4, dtype=np.int32)
    zeros = np.zeros(3, np.float32)
    example = Example(0, answer[:1], (answer,), token_values={OLD: (zeros,), ADVANTAGES: (zeros,)})
    batch = Batcher("packed", "labels", 64, 0).collate([example])
    objective = PolicyGradientObjective(config_of(entropy_weight=0.5, reducer="token"), Turn(), 8)
    loss, sums = objective.forward((torch.zeros(3), None, torch.tensor([1.0, 2.0, 6.0])), batch)
    assert loss.item() == -4.5
    assert objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))["entropy"] == 3


def test_a_ratio_that_is_no_rounding_fails_the_first_update_only():
    sums = dict.fromkeys(PolicyGradientObjective.measures, 1.0) | {"ratio_error_max": 0.6, "answers": 0.0}
    with pytest.raises(RatioDiffers, match=r"is 1\.6 times as likely"):
        PolicyGradientObjective(config_of(), Turn(), 8).metrics(sums)
    assert "ratio_error" not in PolicyGradientObjective(config_of(), Turn(first=False), 8).metrics(sums)
    small = sums | {"ratio_error_max": 1e-6}
    assert PolicyGradientObjective(config_of(), Turn(), 8).metrics(small)["ratio_error"] == pytest.approx(1e-6)


def test_rounding_is_smaller_in_float32_than_in_bf16():
    sums = dict.fromkeys(PolicyGradientObjective.measures, 1.0) | {"ratio_error_max": 0.02, "answers": 0.0}
    with pytest.raises(RatioDiffers, match=r"is 1\.02 times as likely"):
        PolicyGradientObjective(config_of(), Turn(), 8).metrics(sums)
    for mixed in (False, True):
        method = training_of(config_of())
        renderer = SimpleNamespace(max_length=16)
        prompts = [Example(0, np.arange(2, dtype=np.int32), ())]
        method.source(SourceContext(prompts, [], renderer, None, Phases(), None, mixed=mixed))
        objective = method.objective()
        if mixed:
            assert objective.metrics(sums)["ratio_error"] == pytest.approx(0.02)
        else:
            with pytest.raises(RatioDiffers):
                objective.metrics(sums)


def test_the_weights_of_tokens_are_of_the_kl_in_the_loss_too():
    """Which is an expectation over answers of the policy, as the advantages are."""
    ids = np.arange(1, 4, dtype=np.int32)
    names = (OLD, ADVANTAGES, REFERENCE, SAMPLER_WEIGHTS)
    old, advantages = np.array([-1.0, -2.0, -0.5], np.float32), np.array([1.0, -1.0, 0.0], np.float32)
    near, weights = np.array([-1.5, -1.0, -3.0], np.float32), np.array([0.5, 2.0, 1.5], np.float32)
    given = dict(zip(names, ((old,), (advantages,), (near,), (weights,)), strict=True))
    config = config_of(kl_in="loss", kl_estimator="k2", kl_weight=0.1, reducer="token", sampler_weight_cap=2.0)
    batch = Batcher("packed", "labels", 64, 0).collate([Example(0, ids[:1], (ids,), token_values=given)])
    loss, _ = PolicyGradientObjective(config, Turn(), 8).forward((torch.from_numpy(old), None), batch)
    # Ratios are 1: each token has -advantage + .1 (log-ratio)^2 / 2, times its weight.
    assert loss.item() == pytest.approx(float((weights * (-advantages + 0.05 * (old - near) ** 2)).sum()), rel=1e-5)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("rloo", {}),
        ("rloo", {"kl_in": "loss", "kl_estimator": "k2"}),
        ("grpo", {"scaling": "none", "reducer": "constant", "kl_estimator": "k2"}),
        ("reinforce_pp", {}),
        ("reinforce_pp", {"baseline": True}),
        *(
            (method, {"scaling": "none", "reducer": "constant", "kl_weight": 0.5})
            for method in ("gspo", "cispo", "dapo", "sapo")
        ),
    ],
)
def test_a_tabular_policy_becomes_the_reference_times_the_exponential_of_its_rewards(method, changes):
    """pi_ref exp(r / beta) / Z, of four answers of one token. By the methods' own advantages and objective."""
    torch.manual_seed(0)
    beta, n = 0.5, 512
    rewards = torch.tensor([0.0, 0.5, 1.0, 0.25], dtype=torch.float64)
    reference = torch.tensor([0.4, 0.3, 0.1, 0.2], dtype=torch.float64)
    wanted = reference * (rewards / beta).exp()
    wanted /= wanted.sum()
    config = config_of(method, **{"answers": 256, "kl_weight": beta, **changes})
    of, objective = training_of(config), PolicyGradientObjective(config, Turn(), 1)
    logits = reference.log().clone().requires_grad_()
    for step in range(120):
        log_pi = logits.log_softmax(-1)
        drawn = torch.multinomial(log_pi.exp().detach(), n, replacement=True)
        old, near = log_pi.detach()[drawn], reference.log()[drawn]
        apart = (old - near).numpy() * (config.kl_in == "reward")
        advantages = np.concatenate(of.advantages(Answers(rewards[drawn].numpy()[None], list(apart[:, None]))))
        values = {OLD: old, ADVANTAGES: torch.from_numpy(advantages), REFERENCE: near}
        batch = SimpleNamespace(token_values=values, label_counts=torch.ones(n))
        loss, _ = objective.forward((log_pi[drawn], None), batch)
        (gradient,) = torch.autograd.grad(loss / n, logits)
        with torch.no_grad():
            logits -= (2.0 if step < 80 else 0.3) * gradient
    np.testing.assert_allclose(logits.softmax(-1).detach().numpy(), wanted.numpy(), atol=0.03)


def test_ppos_policy_becomes_the_same_and_its_critic_expects_what_that_is_worth():
    """Every answer is then worth beta log Z, its KL deducted. PPO's own judgement and objective are used."""
    torch.manual_seed(0)
    beta, n = 0.5, 512
    rewards = torch.tensor([0.0, 0.5, 1.0, 0.25], dtype=torch.float64)
    reference = torch.tensor([0.4, 0.3, 0.1, 0.2], dtype=torch.float64)
    tilted = reference * (rewards / beta).exp()
    config = config_of("ppo", answers=256, kl_weight=beta)
    of, objective = training_of(config), PpoObjective(config, Turn(), 1)
    logits = reference.log().clone().requires_grad_()
    value = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    passes = SimpleNamespace(per_label=lambda examples, name: [[value.detach().numpy()]] * n)
    context = SimpleNamespace(passes=passes, phases=Phases(), started_as={})
    for step in range(120):
        log_pi = logits.log_softmax(-1)
        drawn = torch.multinomial(log_pi.exp().detach(), n, replacement=True)
        old = log_pi.detach()[drawn]
        apart = list((old - reference.log()[drawn]).numpy()[:, None])
        judgement = of.judge(
            step, Answers(rewards[drawn].numpy()[None], apart), [SimpleNamespace(tokens=1)] * n, context
        )
        given = {ADVANTAGES: judgement.advantages, **judgement.further}
        values = {OLD: old} | {name: torch.from_numpy(np.concatenate(of_each)) for name, of_each in given.items()}
        batch = SimpleNamespace(token_values=values, label_counts=torch.ones(n), weights=torch.ones(n))
        loss, _ = objective.forward({"model": (log_pi[drawn], None), CRITIC: value.expand(n)}, batch)
        of_policy, of_critic = torch.autograd.grad(loss / n, [logits, value])
        with torch.no_grad():
            logits -= (2.0 if step < 80 else 0.3) * of_policy
            value -= 0.5 * of_critic
    wanted = (tilted / tilted.sum()).numpy()
    np.testing.assert_allclose(logits.softmax(-1).detach().numpy(), wanted, atol=0.03)
    assert value.item() == pytest.approx(beta * tilted.sum().log().item(), abs=0.03)


def test_gdpos_policy_becomes_the_reference_times_the_exponential_of_its_normalised_rewards():
    """Which depend on the policy: the rewards are those under the policy that was reached. By GDPO's own advantages and
    objective."""
    torch.manual_seed(0)
    beta, n, weights = 1.0, 512, {"a": 1.0, "b": 0.5}
    sources = {"a": torch.tensor([0.0, 0.5, 1.0, 0.25]), "b": torch.tensor([10.0, 0.0, -10.0, 20.0])}
    reference = torch.tensor([0.4, 0.3, 0.1, 0.2], dtype=torch.float64)
    config = config_of("gdpo", answers=256, kl_weight=beta)
    of, objective = training_of(config), PolicyGradientObjective(config, Turn(), 1)
    logits = reference.log().clone().requires_grad_()
    for step in range(120):
        log_pi = logits.log_softmax(-1)
        drawn = torch.multinomial(log_pi.exp().detach(), n, replacement=True)
        given = {name: values.double()[drawn].numpy()[None] for name, values in sources.items()}
        total = sum(weights[name] * values for name, values in given.items())
        advantages = np.concatenate(of.advantages(Answers(total, [np.zeros(1)] * n, given, weights)))
        old = log_pi.detach()[drawn]
        values = {OLD: old, ADVANTAGES: torch.from_numpy(advantages), REFERENCE: reference.log()[drawn]}
        batch = SimpleNamespace(token_values=values, label_counts=torch.ones(n))
        loss, _ = objective.forward((log_pi[drawn], None), batch)
        (gradient,) = torch.autograd.grad(loss / n, logits)
        with torch.no_grad():
            logits -= (1.0 if step < 80 else 0.2) * gradient
    pi = logits.softmax(-1).detach().double()

    def normalised(log_probs: torch.Tensor) -> torch.Tensor:
        apart = log_probs - (pi * log_probs).sum()
        return apart / (pi * apart.square()).sum().sqrt()

    worth = normalised(sum(weights[name] * normalised(values.double()) for name, values in sources.items()))
    wanted = reference * (worth / beta).exp()
    np.testing.assert_allclose(pi.numpy(), (wanted / wanted.sum()).numpy(), atol=0.03)
    assert abs(pi - reference).max() > 0.1


def test_of_measures_named_max_the_largest_counts_and_others_add_up():
    objective = PolicyGradientObjective(config_of(), Turn(), 8)
    names = objective.measures
    passes = [torch.full((len(names),), value, dtype=torch.float64) for value in (1.0, 3.0, 2.0)]
    sums = torch.zeros(len(names), dtype=torch.float64)
    for measured in passes:
        sums = added(sums, measured, objective)
    combined = dict(zip(names, sums.tolist(), strict=True))
    assert {name for name, value in combined.items() if value == 3} == {
        *("ratio_error_max", "apart_max", "sampler_ratio_max"),
    }
    assert set(combined.values()) == {3.0, 6.0}
