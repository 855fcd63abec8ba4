"""What happens to rewards between the answers and the advantages, on numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch.nn import functional as F

from steerboard_contracts.methods import needed_method
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.head import read_logits
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.sampling import Sampled, refilled
from steerboard_workers.alignment.online.scoring import Scores
from steerboard_workers.alignment.policy_gradient.shaping import RunningMoments, overlong
from steerboard_workers.alignment.rollouts import Rollout

NAN = float("nan")


def config_of(method: str = "rloo", **changes):
    return needed_method(method).config.model_validate({"method": method, **changes})


def test_long_answers_pay_by_the_token_as_the_equation_says():
    assert overlong([5, 6, 7, 9, 10, 11], longest=10, margin=4).tolist() == [0, 0, -0.25, -0.75, -1, -1]
    with pytest.raises(ValueError, match="margin"):
        overlong([1], longest=10, margin=10)


def test_running_moments_are_those_of_all_values_however_these_come():
    values = np.random.default_rng(0).normal(5, 3, 40)
    values[7] = NAN
    known = values[~np.isnan(values)]
    moments = RunningMoments()
    for part in np.split(values, [1, 2, 9, 30]):
        moments.add(part)
    assert (moments.count, moments.mean) == (39, pytest.approx(known.mean()))
    expected = (values - known.mean()) / known.std(ddof=1)
    np.testing.assert_allclose(moments.normalised(values), expected, rtol=1e-5)
    equal = RunningMoments()
    equal.add(np.array([2.0, 2.0, NAN]))
    assert equal.normalised(np.array([2.0, 3.0])).tolist() == [0, 1]


def test_entropies_and_their_gradients_are_exact():
    logits = torch.randn(5, 11, generator=torch.Generator().manual_seed(0), requires_grad=True)
    weights = torch.arange(1.0, 6.0)

    def entropies(of: torch.Tensor) -> torch.Tensor:
        return read_logits(of, torch.zeros(len(of), dtype=torch.long), entropic=True)[2]

    (gradient,) = torch.autograd.grad((weights * entropies(logits)).sum(), logits)
    log_p = F.log_softmax(logits.double(), -1)
    exact = -(log_p.exp() * log_p).sum(-1)
    torch.testing.assert_close(entropies(logits).double(), exact, rtol=1e-6, atol=1e-6)
    (expected,) = torch.autograd.grad((weights * exact).sum(), logits)
    torch.testing.assert_close(gradient, expected.float(), rtol=1e-5, atol=1e-6)
    far = torch.tensor([[0.0, 1e4, -1e4]], requires_grad=True)
    assert torch.autograd.grad(entropies(far).sum(), far)[0].abs().max() == 0


# -- several rewards --------------------------------------------------------------------------------------------------


def test_several_rewards_are_normalised_apart_by_the_method():
    """Standardised .7071, -.7071 and half of -.7071, .7071; then by the deviation of all, .645497."""
    sources = {"right": np.array([[1.0, 0], [0, 1]]), "length": np.array([[10.0, 20], [5, 5]])}
    answers = Answers(sum(sources.values()), [np.zeros(2)] * 4, sources, {"right": 1.0, "length": 0.5})
    advantages = training_of(config_of("gdpo", answers=2)).advantages(answers)
    for values, expected in zip(advantages, (0.547723, -0.547723, -1.095445, 1.095445), strict=True):
        assert values.tolist() == pytest.approx([expected] * 2, rel=1e-4)


def test_a_reward_of_weight_0_leaves_no_answer_out():
    first, second = np.array([[1.0, 0], [0, 1]]), np.array([[10.0, 20], [5, 5]])
    watcher = np.array([[np.nan, 1.0], [2, np.nan]])
    method, weights = training_of(config_of("gdpo", answers=2)), {"a": 1.0, "b": 0.5, "watcher": 0.0}
    without = method.advantages(Answers(first, [np.zeros(2)] * 4, {"a": first, "b": second}, weights))
    sources = {"a": first, "b": second, "watcher": watcher}
    np.testing.assert_array_equal(method.advantages(Answers(first, [np.zeros(2)] * 4, sources, weights)), without)


@pytest.mark.parametrize(
    ("method", "changes", "given", "fault"),
    [
        ("gdpo", {"rules": [{"kind": "regex", "pattern": "a"}]}, (), "there is one reward"),
        ("gdpo", {"rules": [{"kind": "regex", "pattern": "a"}]}, ("reward",), None),
        ("gdpo", {"overlong_tokens": 8, "max_new_tokens": 16}, ("reward",), None),
        ("gdpo", {}, (), "nothing gives the answers a reward"),
        ("online_dpo", {}, ("model", "data"), "nothing gives the answers a reward"),
        ("rloo", {}, ("reward_2",), None),
        ("rloo", {"reward_weights": [0]}, ("reward",), "every reward has the weight 0"),
        ("rloo", {"reward_weights": [0]}, ("reward", "reward_2"), None),
        ("rloo", {"rules": [{"kind": "regex", "pattern": "a", "weight": 0}]}, (), "every reward has the weight 0"),
        ("gdpo", {"reward_weights": [1, 0]}, ("reward", "reward_2"), "there is one reward"),
        ("ppo", {"ptx_coefficient": 1}, ("reward",), "ptx_coefficient needs a dataset"),
        ("ppo", {}, ("reward", "pretraining"), "`pretraining` has no effect"),
        ("gdpo", {"ptx_coefficient": 1}, ("reward", "reward_2", "pretraining"), None),
    ],
)
def test_what_the_inputs_lack_is_known_before_anything_runs(method, changes, given, fault):
    message = config_of(method, **changes).input_fault(given)
    assert message == fault or message.startswith(fault)


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("gdpo", {"kl_in": "reward"}, "kl_in must be loss"),
        ("gdpo", {"normalise_rewards": True}, "no effect"),
        ("gdpo", {"reward_clip": 1}, "bounds the sum"),
        ("rloo", {"overlong_tokens": 8, "max_new_tokens": 8}, "must be fewer than max_new_tokens"),
        ("rloo", {"max_new_tokens": 64, "max_length": 64}, "leaves no room for a prompt"),
        ("reinforce_pp", {"refill": 1, "answers": 1}, "needs answers of 2 or more"),
        ("online_dpo", {"answers": 1}, "greater than or equal to 2"),
        ("grpo", {"ptx_batch": 8}, "ptx_batch has no effect"),
    ],
)
def test_what_cannot_work_is_refused_with_the_config(method, changes, message):
    with pytest.raises(ValidationError, match=message):
        config_of(method, **changes)


# -- dynamic sampling -------------------------------------------------------------------------------------------------


def sampled(*rewards: tuple[float, float], row: int = 0) -> Sampled:
    ids = np.arange(3, dtype=np.int32)
    prompts = [Example(row + place, ids, ()) for place in range(len(rewards))]
    rollouts = [Rollout(p.row, n, ids, np.zeros(3, np.float32), str(n), True) for p in prompts for n in range(2)]
    flat = np.array(rewards, dtype=np.float64).reshape(-1)
    return Sampled(prompts, rollouts, [Example(r.row, ids, (ids,)) for r in rollouts], Scores(flat, {"r": flat}, {}))


def test_prompts_are_asked_until_enough_have_answers_that_differ():
    draws = iter([sampled((1, 1), (0, 1)), sampled((2, 2), (NAN, 3), row=2), sampled((4, 5), (6, 7), row=4)])
    kept, drawn, metrics = refilled(lambda: next(draws), wanted=2, most=5)
    assert [p.row for p in drawn.prompts] == [0, 1, 2, 3, 4, 5]
    assert [p.row for p in kept.prompts] == [1, 4]
    assert [r.row for r in kept.rollouts] == [1, 1, 4, 4]
    assert kept.scores.total.tolist() == kept.scores.sources["r"].tolist() == [0, 1, 4, 5]
    assert metrics == {"refills": 2, "equal_groups_drawn": 0.5, "missing_groups": 0}


def test_refilling_ends_at_its_bound_with_what_there_is():
    draws = iter([sampled((1, 1), (0, 1)), sampled((2, 2), (3, 3), row=2)])
    kept, _, metrics = refilled(lambda: next(draws), wanted=2, most=1)
    assert ([p.row for p in kept.prompts], metrics["missing_groups"]) == ([1], 1)
    kept, _, metrics = refilled(lambda: sampled((1, 1), (0, 0)), wanted=2, most=1)
    assert (len(kept.prompts), metrics["missing_groups"], metrics["refills"]) == (2, 2, 1)
    kept, _, metrics = refilled(lambda: sampled((1, 1), (0, 1)), wanted=2, most=0)
    assert (len(kept.prompts), metrics) == (2, {})
