"""Rewards of answers, the advantages they turn into, and the objective that learns them."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.methods.ppo import CRITIC, PpoObjective
from steerboard_workers.alignment.online.answers import Answers, equal_groups, length_metrics
from steerboard_workers.alignment.online.matching import Matcher
from steerboard_workers.alignment.online.objective import (
    ADVANTAGES,
    OLD,
    REFERENCE,
    PolicyGradientObjective,
    RatioDiffers,
    Turn,
)
from steerboard_workers.alignment.online.rows import RowTexts, reference_answer
from steerboard_workers.alignment.online.sampling import Sampled
from steerboard_workers.alignment.online.scoring import AnswerRewards, Scores, UnscoredAnswers
from steerboard_workers.alignment.online.source import PolicyGradientSource
from steerboard_workers.alignment.rollouts import Rollout, SourceContext
from steerboard_workers.phases import Phases

NAN = float("nan")


def config_of(method: str = "rloo", **changes) -> PolicyGradientConfig:
    found = needed_method(method).config.model_validate({"method": method, **changes})
    assert isinstance(found, PolicyGradientConfig)
    return found


class Given:
    """Passes with rewards that are given by model."""

    def __init__(self, **rewards: list[float]) -> None:
        self._rewards = rewards

    def has(self, model: str) -> bool:
        return model in self._rewards

    def renderer(self, model: str) -> None:
        return None

    def per_sequence(self, examples, model=None):
        return [np.array([reward], dtype=np.float32) for reward in self._rewards[model]]


def answers_of(*texts: str, row: int = 7) -> list[Rollout]:
    ids = np.arange(4, dtype=np.int32)
    return [Rollout(row, n, ids, np.zeros(4, np.float32), text, True) for n, text in enumerate(texts)]


def scored(answers: list[Rollout], passes=None, references=None, **config):
    rewards = AnswerRewards(config_of(**config), RowTexts(references or {}), passes or Given())
    return rewards.score(answers, [Example(a.row, a.ids, (a.ids,)) for a in answers])


def test_rules_compare_with_the_reference_or_look_for_a_pattern():
    answers = answers_of(" 42 ", "The answer is 41. No: the answer is 42.", "42 apples")
    rules = [
        {"kind": "exact_match"},
        {"kind": "exact_match", "extract": r"answer is (\d+)", "weight": 2.0},
        {"kind": "regex", "pattern": r"\Aapples|apples\Z", "weight": -1.0},
    ]
    found = scored(answers, references={7: "42"}, rules=rules)
    assert {name: values.tolist() for name, values in found.sources.items()} == {
        "exact_match": [1, 0, 0],
        "exact_match_2": [0, 1, 0],
        "regex": [0, 0, 1],
    }
    assert found.total.tolist() == [1, 2, -1]
    assert scored(answers_of("Yes"), references={7: "yes"}, rules=rules[:1]).total.tolist() == [0]
    assert scored(
        answers_of("Yes"), references={7: "yes"}, rules=[{"kind": "exact_match", "ignore_case": True}]
    ).total.tolist() == [1]


def test_what_has_no_reward_is_not_counted_as_0():
    passes = Given(reward=[1.0, NAN, 3.0, float("inf")])
    found = scored(answers_of(*"abcd"), passes, max_unscored=0.5)
    np.testing.assert_array_equal(found.total, [1, NAN, 3, NAN])
    assert found.metrics() == {"reward": 2.0, "reward_model": 2.0, "unscored": 0.5}
    with pytest.raises(UnscoredAnswers, match="2 of 4 answers have no reward, the first one of row 7 by model: 'b'"):
        scored(answers_of(*"abcd"), passes, max_unscored=0.4)


def test_a_pattern_that_never_ends_fails_with_the_answer_and_not_the_machine():
    started = time.monotonic()
    matcher = Matcher(seconds=0.3)
    assert matcher.find("b+", ["abbab", "c"]) == ["b", None]
    with pytest.raises(BadInput, match=r"'\(a\+\)\+\$' takes more than 0.3 seconds, .* 'aaaa") as refused:
        matcher.find("(a+)+$", ["a" * 60 + "b"])
    assert refused.value.code == "rule_too_slow"
    assert matcher.find("b", ["b"]) == ["b"]
    assert time.monotonic() - started < 30


def test_an_answer_on_which_a_pattern_never_ends_is_left_out_and_only_too_many_fail(monkeypatch):
    monkeypatch.setattr("steerboard_workers.alignment.online.scoring.Matcher", lambda: Matcher(seconds=0.3))
    answers = answers_of("aa", "a" * 60 + "b", "b", "aaa")
    rules = [{"kind": "regex", "pattern": "^(a+)+$"}, {"kind": "exact_match", "extract": "^(a+)+$"}]
    found = scored(answers, references={7: "aa"}, rules=rules, max_unscored=0.25)
    np.testing.assert_array_equal(found.sources["regex"], [1, NAN, 0, 1])
    np.testing.assert_array_equal(np.isnan(found.total), [False, True, False, False])
    assert found.metrics()["unscored"] == 0.25
    with pytest.raises(BadInput, match=r"on the answer 'aaaa.*it was the same with 1 before") as refused:
        scored([*answers, *answers], references={7: "aa"}, rules=rules, max_unscored=0.2)
    assert refused.value.code == "rule_too_slow"


@pytest.mark.parametrize(
    ("row", "reference"),
    [
        ({"reference": "42", "response": "41"}, "42"),
        ({"response": "41", "source": "x"}, "41"),
        ({"response": "41", "reward": 1.0}, None),
        ({"response": "41", "desirable": True}, None),
        ({"chosen": "1", "rejected": "2"}, None),
    ],
)
def test_only_prompts_and_instructions_have_a_reference_answer(row, reference):
    assert reference_answer(row) == reference


# -- advantages -------------------------------------------------------------------------------------------------------

RATIOS = [np.array([0.5, 0.5]), np.array([-1.0]), np.array([0.0, 1.0, 1.0]), np.array([2.0])]


def advantages(method: str, rewards, **config) -> list[list[float]]:
    of = training_of(config_of(method, answers=2, **config))
    return [one.tolist() for one in of.advantages(Answers(np.array(rewards, dtype=np.float64), RATIOS))]


def test_the_kl_of_an_answer_is_taken_from_its_reward_before_it_is_compared():
    # 1 - .1, 2 + .1 and 3 - .2, 5 - .2
    assert advantages("rloo", [[1, 2], [3, 5]], kl_weight=0.1) == [
        pytest.approx([-1.2, -1.2]),
        pytest.approx([1.2]),
        pytest.approx([-2.0] * 3),
        pytest.approx([2.0]),
    ]
    scale = 1 / np.sqrt(2)
    assert advantages("grpo", [[1, 2], [3, 5]], kl_weight=0.1, kl_in="reward")[0] == pytest.approx([-scale] * 2, 1e-5)
    assert advantages("grpo", [[1, 2], [3, 5]], kl_weight=0.1, scaling="none")[3] == pytest.approx([1.0])


def test_returns_of_tokens_are_whitened_over_all_tokens():
    found = advantages("reinforce_pp", [[1, 2], [3, 5]], kl_weight=0.1)
    returns = np.array([1 - 0.1, 1 - 0.05, 2.1, 3 - 0.2, 3 - 0.2, 3 - 0.1, 5 - 0.2])
    expected = (returns - returns.mean()) / returns.std(ddof=1)
    assert np.concatenate(found) == pytest.approx(expected, 1e-5)
    centred = np.array([-0.6, -0.6, 0.6, -1, -1, -1, 1])
    expected = (centred - centred.mean()) / centred.std(ddof=1)
    found = advantages("reinforce_pp", [[1, 2], [3, 5]], kl_weight=0.1, baseline=True)
    assert np.concatenate(found) == pytest.approx(expected, 1e-5)


@pytest.mark.parametrize("method", ["rloo", "grpo", "reinforce_pp"])
def test_an_answer_without_a_reward_is_left_out_of_all_others(method):
    left = advantages(method, [[1, NAN], [3, 5]], kl_weight=0)
    assert np.isnan(left[1]).all()
    assert np.isnan(left[0]).all() == (method != "reinforce_pp")
    assert not np.isnan(np.concatenate(left[2:])).any()


def test_groups_of_equal_rewards_are_found_without_those_that_have_none():
    assert equal_groups(np.array([[1, 1], [1, 2], [1, NAN], [NAN, NAN]])).tolist() == [True, False, True, True]


def test_lengths_of_liked_and_disliked_answers_are_told_apart():
    answers = [replace(a, ids=np.arange(n, dtype=np.int32)) for a, n in zip(answers_of(*"abc"), (2, 4, 9), strict=True)]
    found = length_metrics(answers, [np.array([1.0]), np.array([1.0]), np.array([-2.0])])
    assert found == {"length": 5.0, "ended": 1.0, "length_positive": 3.0, "length_negative": 9.0}


# -- batches ----------------------------------------------------------------------------------------------------------


class Sampler:
    """Writes the answers "0", "1", ... to each prompt, whose first id is theirs alone; only the first one ends."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def sample(self, step, prompts, *, answers=1, temperature=1.0, max_new_tokens=None):
        self.steps.append(step)
        log_probs = np.full(3, -1.0, np.float32)
        return [[Rollout(p.row, n, ids(step, n), log_probs, str(n), n == 0) for n in range(answers)] for p in prompts]


def ids(step: int, n: int) -> np.ndarray:
    return np.array([10 * step + n + 1, 2, 3], dtype=np.int32)


class Log(Given):
    def per_label(self, examples, model=None):
        return [[np.full(3, -1.0, np.float32)] for _ in examples]


class ById(Log):
    """Rewards that differ by prompt and answer, now and then equal."""

    def per_sequence(self, examples, model=None):
        return [np.array([e.row * int(e.responses[0][0]) % 5], dtype=np.float32) for e in examples]


def source_of(passes: Log, rows: int = 2, **changes) -> PolicyGradientSource:
    config = config_of(**{"batch": 2, "answers": 2, "max_new_tokens": 3, "kl_weight": 0, **changes})
    prompts = [Example(row, np.arange(2, dtype=np.int32), ()) for row in range(rows)]
    renderer = type("Renderer", (), {"max_length": 16})()
    context = SourceContext(prompts, [], renderer, Sampler(), Phases(), passes)
    method = training_of(config)
    return PolicyGradientSource(context, config, Turn(), RowTexts(), method.judge, method.tied)


def batch_of(rewards: list[float] | dict[str, list[float]], **changes):
    given = rewards if isinstance(rewards, dict) else {"reward": rewards}
    return source_of(Log(**given), **changes).batch(0)


def test_prompts_whose_answers_are_equal_are_left_out_on_request_and_always_counted():
    batch = batch_of([1, 1, 1, 3])
    assert (len(batch.examples), batch.metrics["equal_groups"]) == (4, 0.5)
    batch = batch_of([1, 1, 1, 3], drop_equal=True)
    assert (len(batch.examples), batch.metrics["equal_groups"]) == (2, 0.5)
    assert len({example.row for example in batch.examples}) == 1
    batch = batch_of([1, 1, 3, 3], drop_equal=True)
    assert (batch.examples, batch.metrics["equal_groups"], batch.skipped) == ([], 1.0, True)


def test_rewards_that_add_up_to_the_same_are_no_tie_where_each_is_normalised_apart():
    """Of the second prompt one reward rises as the other one falls; of the first each is equal."""
    given = {"reward": [1, 1, 0, 2], "reward_2": [3, 3, 2, 0]}
    batch = batch_of(given, method="gdpo", drop_equal=True)
    assert (len(batch.examples), batch.metrics["equal_groups"]) == (2, 0.5)
    assert len({e.row for e in batch.examples}) == 1
    assert batch_of(given).metrics["equal_groups"] == 1
    # What differs only in a reward of weight 0 teaches nothing.
    ignored = {"reward": [1, 1, 2, 2], "reward_2": [0, 1, 0, 1]}
    assert batch_of(ignored, method="gdpo", reward_weights=[1, 0]).metrics["equal_groups"] == 1


def test_refills_keep_prompts_whose_rewards_add_up_to_the_same_but_differ_where_each_is_normalised_apart():
    given = {"reward": [0, 2, 0, 2], "reward_2": [2, 0, 2, 0]}
    found = {method: batch_of(given, method=method, refill=2).metrics for method in ("gdpo", "rloo")}
    assert [(one["refills"], one["missing_groups"]) for one in found.values()] == [(0, 0), (2, 2)]


def test_rewards_are_clipped_before_an_answer_that_was_cut_pays_for_it():
    batch = batch_of([50, 50, 0, 1], reward_clip=10, cut_penalty=2)
    found = sorted(float(e.token_values[ADVANTAGES][0][0]) for e in batch.examples)
    # (10, 10 - 2) and (0, 1 - 2), each less the other one.
    assert found == [-2, -1, 1, 2]


def test_rewards_are_normalised_then_clipped_and_the_length_is_paid_for_last():
    """Mean 10 and standard deviation 2; half of the penalty for the third token of four, all of it for the fourth."""
    shaping = {"normalise_rewards": True, "reward_clip": 1.2, "cut_penalty": 0.5}
    source = source_of(Log(), max_new_tokens=4, overlong_tokens=2, overlong_penalty=3, **shaping)
    source.restore(source.state() | {"moments": {"count": 5, "mean": 10.0, "squares": 16.0}})
    lengths = (1, 3, 4, 4)
    rollouts = [
        replace(answer, ids=np.arange(length, dtype=np.int32), finished=n != 2)
        for n, (answer, length) in enumerate(zip(answers_of(*"abcd"), lengths, strict=True))
    ]
    scores = Scores(np.array([12.0, 10, 20, 1]), {}, {})
    rewards, penalties = source.shaped(Sampled([], rollouts, [], scores))
    assert penalties.tolist() == [0, 1.5, 3.5, 3]
    assert rewards.tolist() == pytest.approx([1, -1.5, -2.3, -4.2], abs=1e-5)


def test_what_an_answer_pays_is_a_reward_of_its_own_among_several():
    batch = batch_of([1, 1, 1, 1], method="gdpo", cut_penalty=1)
    found = {int(e.responses[0][0]): float(e.token_values[ADVANTAGES][0][0]) for e in batch.examples}
    assert found[1] > 0 > found[2]


def test_refills_draw_answers_that_nobody_had():
    source = source_of(Log(reward=[1, 1, 1, 1]), refill=3)
    source.batch(0)
    assert source.context.sampler.steps == [0, 1, 2, 3]


def test_running_means_are_of_all_answers_that_were_drawn():
    source = source_of(Log(reward=[1, 1, 1, 3]), refill=3, normalise_rewards=True)
    assert len(source.batch(0).examples) == 4
    assert source.state()["moments"] == {"count": 8, "mean": 1.5, "squares": 6.0}


def test_a_source_that_is_restored_gives_what_the_saved_one_would_have_given():
    changes = {"rows": 6, "normalise_rewards": True, "refill": 2, "minibatches": 2}
    saved, restored = source_of(ById(reward=[]), **changes), source_of(ById(reward=[]), **changes)
    saved.batch(0)
    restored.restore(saved.state())
    for step in range(1, 6):
        one, other = saved.batch(step), restored.batch(step)
        assert one.metrics == other.metrics
        assert [e.row for e in one.examples] == [e.row for e in other.examples]
        for a, b in zip(one.examples, other.examples, strict=True):
            assert a.responses[0].tolist() == b.responses[0].tolist()
            assert a.token_values[ADVANTAGES][0].tolist() == b.token_values[ADVANTAGES][0].tolist()


# -- the objective ----------------------------------------------------------------------------------------------------


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
    assert objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))["clip_share"] == 0
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
    sums = dict.fromkeys(PolicyGradientObjective.measures, 1.0) | {"ratio_error": 0.6**16}
    with pytest.raises(RatioDiffers, match=r"is 1\.6 times as likely"):
        PolicyGradientObjective(config_of(), Turn(), 8).metrics(sums)
    assert "ratio_error" not in PolicyGradientObjective(config_of(), Turn(first=False), 8).metrics(sums)
    small = sums | {"ratio_error": 1e-6**16}
    assert PolicyGradientObjective(config_of(), Turn(), 8).metrics(small)["ratio_error"] == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("rloo", {}),
        ("rloo", {"kl_in": "loss", "kl_estimator": "k2"}),
        ("grpo", {"scaling": "none", "reducer": "constant", "kl_estimator": "k2"}),
        ("reinforce_pp", {}),
        ("reinforce_pp", {"baseline": True}),
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
    config = config_of(method, answers=256, kl_weight=beta, **changes)
    of, objective = training_of(config), PolicyGradientObjective(config, Turn(), 1)
    logits = reference.log().clone().requires_grad_()
    for step in range(120):
        log_pi = logits.log_softmax(-1)
        drawn = torch.multinomial(log_pi.exp().detach(), n, replacement=True)
        old, near = log_pi.detach()[drawn], reference.log()[drawn]
        apart = (old - near).numpy() * (config.kl_in == "reward")
        found = np.concatenate(of.advantages(Answers(rewards[drawn].numpy()[None], list(apart[:, None]))))
        values = {OLD: old, ADVANTAGES: torch.from_numpy(found), REFERENCE: near}
        batch = SimpleNamespace(token_values=values, label_counts=torch.ones(n))
        loss, _ = objective.forward((log_pi[drawn], None), batch)
        (gradient,) = torch.autograd.grad(loss / n, logits)
        with torch.no_grad():
            logits -= (2.0 if step < 80 else 0.3) * gradient
    np.testing.assert_allclose(logits.softmax(-1).detach().numpy(), wanted.numpy(), atol=0.03)


def test_ppos_policy_becomes_the_same_and_its_critic_expects_what_that_is_worth():
    """After which every answer is worth beta log Z, its KL deducted. By PPO's own judgement and objective."""
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
    context = SimpleNamespace(passes=passes, phases=Phases())
    for step in range(120):
        log_pi = logits.log_softmax(-1)
        drawn = torch.multinomial(log_pi.exp().detach(), n, replacement=True)
        old = log_pi.detach()[drawn]
        apart = list((old - reference.log()[drawn]).numpy()[:, None])
        found = of.judge(step, Answers(rewards[drawn].numpy()[None], apart), [SimpleNamespace(tokens=1)] * n, context)
        given = {ADVANTAGES: found.advantages, **found.further}
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
        given = {name: one.double()[drawn].numpy()[None] for name, one in sources.items()}
        total = sum(weights[name] * one for name, one in given.items())
        found = np.concatenate(of.advantages(Answers(total, [np.zeros(1)] * n, given, weights)))
        old = log_pi.detach()[drawn]
        values = {OLD: old, ADVANTAGES: torch.from_numpy(found), REFERENCE: reference.log()[drawn]}
        batch = SimpleNamespace(token_values=values, label_counts=torch.ones(n))
        loss, _ = objective.forward((log_pi[drawn], None), batch)
        (gradient,) = torch.autograd.grad(loss / n, logits)
        with torch.no_grad():
            logits -= (1.0 if step < 80 else 0.2) * gradient
    pi = logits.softmax(-1).detach().double()

    def normalised(one: torch.Tensor) -> torch.Tensor:
        apart = one - (pi * one).sum()
        return apart / (pi * apart.square()).sum().sqrt()

    worth = normalised(sum(weights[name] * normalised(one.double()) for name, one in sources.items()))
    wanted = reference * (worth / beta).exp()
    np.testing.assert_allclose(pi.numpy(), (wanted / wanted.sum()).numpy(), atol=0.03)
    assert abs(pi - reference).max() > 0.1
