"""One prompt with a few answers of one token: every divergence leads the student to the teacher, and a reward
besides it to p exp((1 - alpha) r / alpha) / Z, the optimum of Eq. 5 of arXiv 2306.13649.

Every answer comes with its probability, so nothing is drawn, and what the losses lead to is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from steerboard_contracts.methods import needed_method
from steerboard_workers.alignment.batches.batching import Batcher, MicroBatch
from steerboard_workers.alignment.divergence import read
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.methods.distillation import TEACHERS
from steerboard_workers.alignment.online.objective import ADVANTAGES, SAMPLED

TEACHER = torch.tensor([0.6, 2.0, -1.0, 0.3])
START = torch.tensor([-0.5, 0.1, 1.5, 0.0])
REWARDS = torch.tensor([1.0, 0.3, -0.2, 0.6])
KINDS: list[dict[str, Any]] = [
    {"divergence": "forward_kl"},
    {"divergence": "reverse_kl"},
    {"divergence": "jsd", "beta": 0.1},
    {"divergence": "jsd"},
    {"divergence": "sampled_reverse_kl"},
]


def objective_of(**changes: Any):
    return training_of(
        needed_method("distillation").config.model_validate({"method": "distillation", **changes})
    ).objective()


def answers(log_q: Tensor, advantages: Tensor | None = None) -> tuple[list[Example], MicroBatch]:
    """Each of the four answers once. log_q (4,) when they were sampled."""
    teacher = TEACHER.log_softmax(0)
    examples = []
    for token in range(4):
        one = np.array([token], dtype=np.int32)
        values = {SAMPLED: log_q, TEACHERS: teacher, ADVANTAGES: torch.zeros(4) if advantages is None else advantages}
        of_token = {name: (values[name][token : token + 1].detach().numpy(),) for name in values}
        examples.append(Example(0, one, (one,), token_values=of_token))
    return examples, Batcher("padded", "labels", 64, 0).collate(examples)


def expected_loss(objective, logits: Tensor, advantages: Tensor | None = None) -> Tensor:
    """The loss of one answer, on average over those that the policy gives."""
    log_q = logits.log_softmax(0)
    now = log_q.detach()
    total = torch.zeros(())
    examples, _ = answers(now, advantages)
    for token, example in enumerate(examples):
        batch = Batcher("padded", "labels", 64, 0).collate([example])
        output: Any = (log_q[token : token + 1], None)
        if objective.config.whole_vocabulary:
            output = read(logits[None], TEACHER[None], torch.tensor([token]), objective.config.mixture)
        loss, _ = objective.forward(output, batch)
        total = total + now[token].exp() * loss / objective.count([example])
    return total


def learned(objective, rewards: Tensor | None = None, steps: int = 400) -> Tensor:
    logits = START.clone().requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=0.1)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 0.1 * (1 - step / steps)
        optimiser.zero_grad()
        advantages = None if rewards is None else rewards - (logits.detach().softmax(0) * rewards).sum()
        expected_loss(objective, logits, advantages).backward()
        optimiser.step()
    return logits.detach().softmax(0)


@pytest.mark.parametrize("changes", KINDS, ids=lambda changes: "-".join(map(str, changes.values())))
def test_the_student_reaches_the_teacher(changes):
    assert_close(learned(objective_of(**changes)), TEACHER.softmax(0), atol=0.003, rtol=0)


@pytest.mark.parametrize("kind", ["reverse_kl", "sampled_reverse_kl"])
@pytest.mark.parametrize("alpha", [0.7, 0.4])
def test_with_a_reward_it_reaches_the_teacher_tilted_by_that(kind, alpha):
    best = (TEACHER.log_softmax(0) + (1 - alpha) / alpha * REWARDS).softmax(0)
    assert (best - TEACHER.softmax(0)).abs().max() > 0.02
    policy = learned(objective_of(divergence=kind, alpha=alpha, answers=2), REWARDS)
    assert_close(policy, best, atol=0.003, rtol=0)


def test_the_sampled_token_estimates_the_gradient_of_the_whole_vocabulary():
    """The estimate has no bias, and its value is the divergence."""
    losses_and_gradients = []
    for kind in ("reverse_kl", "sampled_reverse_kl"):
        logits = START.clone().requires_grad_()
        loss = expected_loss(objective_of(divergence=kind), logits)
        losses_and_gradients.append((loss, *torch.autograd.grad(loss, logits)))
    for whole, sampled in zip(*losses_and_gradients, strict=True):
        assert_close(sampled, whole)


@pytest.mark.parametrize("reducer", ["token", "sequence"])
def test_figures_and_loss_are_of_the_global_batch_however_it_is_split(reducer):
    objective = objective_of(reducer=reducer)
    draw = torch.Generator().manual_seed(0)
    lengths = (1, 3, 2, 4)
    examples, outputs = [], []
    for row, length in enumerate(lengths):
        ids = np.arange(1, length + 1, dtype=np.int32)
        logits, teacher = (torch.randn(length, 6, generator=draw) for _ in range(2))
        output = read(logits, teacher, torch.from_numpy(ids).long(), 1.0)
        sampled = output.log_probs.numpy() + 0.01 if row % 2 else np.full(length, np.nan, np.float32)
        values = {SAMPLED: (sampled,), ADVANTAGES: (np.zeros(length, np.float32),)}
        examples.append(Example(row, ids[:1], (ids,), token_values=values))
        outputs.append(output)

    def figures(parts: list[list[int]]) -> dict[str, float]:
        sums = dict.fromkeys(objective.measures, 0.0)
        for part in parts:
            batch = Batcher("packed", "labels", 64, 0).collate([examples[place] for place in part])
            joined = tuple(torch.cat([outputs[place][at] for place in part]) for at in range(6))
            _, batch_sums = objective.forward(joined, batch)
            for name, value in zip(objective.measures, batch_sums.tolist(), strict=True):
                sums[name] = max(sums[name], value) if name.endswith("_max") else sums[name] + value
        assert sums["count"] == objective.count(examples)
        return objective.metrics(sums)

    whole = figures([[0, 1, 2, 3]])
    assert figures([[2], [1, 3], [0]]) == pytest.approx(whole, rel=1e-6)
    own = torch.cat([outputs[1].divergences, outputs[3].divergences])
    assert whole["divergence_on_policy"] == pytest.approx(own.mean().item(), rel=1e-6)
    assert (whole["on_policy_share"], whole["sampler_difference"]) == (0.7, pytest.approx(0.01, rel=1e-3))
    means = [output.divergences.mean().item() for output in outputs]
    assert whole["loss"] == pytest.approx(np.mean(means) if reducer == "sequence" else whole["divergence"], rel=1e-6)
