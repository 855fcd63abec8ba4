"""One prompt with a few answers of one token, whose best policy is known: pi_ref exp(r / beta) / Z.

Every group of answers comes with its probability, so nothing is drawn, and what the losses lead to is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from steerboard_workers.alignment.policy_gradient import advantages as adv
from steerboard_workers.alignment.policy_gradient import clipping, kl, losses

REWARDS = torch.tensor([1.0, 0.3, -0.2, 0.6])
REFERENCE = torch.tensor([0.1, 0.9, -0.4, 0.0]).log_softmax(0)
BETA = 0.5

Loss = Callable[[Tensor, Tensor], Tensor]


def best(beta: float = BETA) -> Tensor:
    return (REFERENCE + REWARDS / beta).softmax(0)


def learned(loss: Loss, steps: int = 400, inner: int = 1, lr: float = 0.1) -> Tensor:
    """The policy after `steps` samplings, each learned `inner` times, at a rate that falls to 0. The loss is of
    (log pi, log pi when it was sampled)."""
    logits = REFERENCE.clone().requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=lr)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = lr * (1 - step / steps)
        old = logits.detach().log_softmax(0)
        for _ in range(inner):
            optimiser.zero_grad()
            loss(logits.log_softmax(0), old).backward()
            optimiser.step()
    return logits.detach().softmax(0)


def rewards_less_kl(old: Tensor) -> Tensor:
    return REWARDS - BETA * kl.estimate(old, REFERENCE, "k1")


@pytest.mark.parametrize(("inner", "dual"), [(1, None), (4, None), (4, 3.0)])
def test_the_clipped_loss_with_a_critic_finds_the_best_policy(inner, dual):
    """The critic is a number, learned by the clipped loss of its own, as the policy is."""
    value = torch.zeros(1, requires_grad=True)
    critic = torch.optim.Adam([value], lr=0.05)
    before = value.detach().clone()

    def loss(log_pi: Tensor, old: Tensor) -> Tensor:
        given, chance = rewards_less_kl(old), old.exp()
        a, returns = adv.gae(given[:, None], before.expand(4)[:, None], np.ones((4, 1)), 1.0, 0.95)
        a, returns = (torch.from_numpy(x[:, 0]).float() for x in (a, returns))
        critic.zero_grad()
        (chance * losses.value_loss(value.expand(4), returns, before.expand(4), 0.2)).sum().backward()
        critic.step()
        before.copy_(value.detach())
        return (chance * clipping.clipped_surrogate(losses.ratios(log_pi, old), a, dual=dual)).sum()

    torch.testing.assert_close(learned(loss, inner=inner), best(), atol=0.01, rtol=0)
    assert value.item() == pytest.approx(float(rewards_less_kl(best().log()) @ best()), abs=0.05)


def of_groups(weigh: Callable[[np.ndarray], np.ndarray], in_reward: bool, n: int = 2) -> Loss:
    """The mean loss over every group of n answers."""
    drawn = torch.tensor(list(itertools.product(range(4), repeat=n)))

    def loss(log_pi: Tensor, old: Tensor) -> Tensor:
        given = rewards_less_kl(old) if in_reward else REWARDS
        a = torch.from_numpy(weigh(given[drawn].numpy())).float()
        chance = old[drawn].sum(1).exp()
        total = (chance * clipping.clipped_surrogate(losses.ratios(log_pi, old)[drawn], a).mean(1)).sum()
        if not in_reward:
            total = total + BETA * (old.exp() * kl.penalty(log_pi, REFERENCE, "k2")).sum()
        return total

    return loss


@pytest.mark.parametrize("weigh", [adv.leave_one_out, adv.centred, adv.standardised])
def test_groups_with_the_divergence_in_the_reward_find_the_best_policy(weigh):
    """Any scale finds it: all answers have the same reward at the best policy, so every advantage is 0."""
    torch.testing.assert_close(learned(of_groups(weigh, True)), best(), atol=0.01, rtol=0)


def test_with_the_divergence_in_the_loss_the_scale_of_the_advantages_matters():
    """Leaving one out scales nothing; less the whole mean, a group of two has half of the gradient, as at twice beta;
    and a standard deviation leads elsewhere."""
    torch.testing.assert_close(learned(of_groups(adv.leave_one_out, False)), best(), atol=0.01, rtol=0)
    torch.testing.assert_close(learned(of_groups(adv.centred, False)), best(2 * BETA), atol=0.01, rtol=0)
    elsewhere = learned(of_groups(adv.standardised, False))
    assert (elsewhere - best()).abs().max() > 0.02
