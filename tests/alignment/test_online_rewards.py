"""Rewards of answers, and the advantages they turn into."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from online_rewards import NAN, Given, answers_of, config_of, scored

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.online.answers import Answers, equal_groups, length_metrics
from steerboard_workers.alignment.online.matching import Matcher
from steerboard_workers.alignment.online.rows import reference_answer
from steerboard_workers.alignment.online.scoring import UnscoredAnswers


def test_rules_compare_with_the_reference_or_look_for_a_pattern():
    answers = answers_of(" 42 ", "The answer is 41. No: the answer is 42.", "42 apples")
    rules = [
        {"kind": "exact_match"},
        {"kind": "exact_match", "extract": r"answer is (\d+)", "weight": 2.0},
        {"kind": "regex", "pattern": r"\Aapples|apples\Z", "weight": -1.0},
    ]
    scores = scored(answers, references={7: "42"}, rules=rules)
    assert {name: values.tolist() for name, values in scores.sources.items()} == {
        "exact_match": [1, 0, 0],
        "exact_match_2": [0, 1, 0],
        "regex": [0, 0, 1],
    }
    assert scores.total.tolist() == [1, 2, -1]
    assert scored(answers_of("Yes"), references={7: "yes"}, rules=rules[:1]).total.tolist() == [0]
    assert scored(
        answers_of("Yes"), references={7: "yes"}, rules=[{"kind": "exact_match", "ignore_case": True}]
    ).total.tolist() == [1]


def test_what_has_no_reward_is_not_counted_as_0():
    passes = Given(reward=[1.0, NAN, 3.0, float("inf")])
    scores = scored(answers_of(*"abcd"), passes, max_unscored=0.5)
    np.testing.assert_array_equal(scores.total, [1, NAN, 3, NAN])
    assert scores.metrics() == {"reward": 2.0, "reward_model": 2.0, "unscored": 0.5}
    with pytest.raises(UnscoredAnswers, match="2 of 4 answers have no reward, the first one of row 7 by model: 'b'"):
        scored(answers_of(*"abcd"), passes, max_unscored=0.4)


def test_a_reward_model_of_weight_0_that_cannot_score_an_answer_changes_its_own_figure_alone():
    passes = Given(reward=[1.0, 2.0, 3.0, 4.0], reward_2=[NAN, 1.0, NAN, 5.0])
    scores = scored(answers_of(*"abcd"), passes, reward_weights=[1, 0], max_unscored=0)
    assert scores.total.tolist() == [1, 2, 3, 4]
    figures = {"reward": 2.5, "reward_model": 2.5, "reward_model_2": 3.0, "independent_reward": 3.0, "unscored": 0.0}
    assert scores.metrics() == figures


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
    scores = scored(answers, references={7: "aa"}, rules=rules, max_unscored=0.25)
    np.testing.assert_array_equal(scores.sources["regex"], [1, NAN, 0, 1])
    np.testing.assert_array_equal(np.isnan(scores.total), [False, True, False, False])
    assert scores.metrics()["unscored"] == 0.25
    with pytest.raises(BadInput, match=r"on the answer 'aaaa.*it was the same with 1 before") as refused:
        scored([*answers, *answers], references={7: "aa"}, rules=rules, max_unscored=0.2)
    assert refused.value.code == "rule_too_slow"


def test_a_pattern_of_weight_0_that_never_ends_fails_nothing_and_is_soon_given_up(monkeypatch):
    monkeypatch.setattr("steerboard_workers.alignment.online.scoring.Matcher", lambda: Matcher(seconds=0.3))
    started = time.monotonic()
    answers = answers_of("aa", *["a" * 60 + "b"] * 200)
    rules = [{"kind": "regex", "pattern": "^a"}, {"kind": "regex", "pattern": "^(a+)+$", "weight": 0}]
    scores = scored(answers, rules=rules, max_unscored=0)
    assert scores.total.tolist() == [1] * 201
    np.testing.assert_array_equal(scores.sources["regex_2"], [1, *[NAN] * 200])
    assert time.monotonic() - started < 30


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
    return [values.tolist() for values in of.advantages(Answers(np.array(rewards, dtype=np.float64), RATIOS))]


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
    values = advantages("reinforce_pp", [[1, 2], [3, 5]], kl_weight=0.1)
    returns = np.array([1 - 0.1, 1 - 0.05, 2.1, 3 - 0.2, 3 - 0.2, 3 - 0.1, 5 - 0.2])
    expected = (returns - returns.mean()) / returns.std(ddof=1)
    assert np.concatenate(values) == pytest.approx(expected, 1e-5)
    centred = np.array([-0.6, -0.6, 0.6, -1, -1, -1, 1])
    expected = (centred - centred.mean()) / centred.std(ddof=1)
    values = advantages("reinforce_pp", [[1, 2], [3, 5]], kl_weight=0.1, baseline=True)
    assert np.concatenate(values) == pytest.approx(expected, 1e-5)


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
    metrics = length_metrics(answers, [np.array([1.0]), np.array([1.0]), np.array([-2.0])])
    assert metrics == {"length": 5.0, "ended": 1.0, "length_positive": 3.0, "length_negative": 9.0}
