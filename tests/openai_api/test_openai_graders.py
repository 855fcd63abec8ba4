"""Graders as rewards: formulas are weighted sums, and what a rule cannot say is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from steerboard.openai_api.errors import UnsupportedParameter
from steerboard.openai_api.jobs.graders import BadGrader, rewards_of

OUTPUT = "{{ sample.output_text }}"


def check(operation: str, reference: str, **more: Any) -> dict[str, Any]:
    given = {"type": "string_check", "name": "x", "input": OUTPUT, "operation": operation, "reference": reference}
    return {**given, **more}


def score(model: str) -> dict[str, Any]:
    return {"type": "score_model", "name": "x", "model": model}


@pytest.mark.parametrize(
    ("operation", "matches", "others"),
    [
        ("eq", ["a.b", " a.b\n"], ["axb", "a.b c", ""]),
        ("ne", ["axb", "a.b c", ""], ["a.b", " a.b "]),
        ("like", ["so a.b it is"], ["A.B", "axb"]),
        ("ilike", ["so A.B it is"], ["axb"]),
    ],
)
def test_a_check_against_a_text_is_a_pattern_that_means_the_same(
    operation: str, matches: list[str], others: list[str]
) -> None:
    (rule,) = rewards_of(check(operation, "a.b"), "grader").rules
    assert all(re.search(rule["pattern"], text) for text in matches)
    assert not any(re.search(rule["pattern"], text) for text in others)


@pytest.mark.parametrize(
    ("formula", "weights"),
    [
        ("a", {"a": 1.0}),
        ("a + b", {"a": 1.0, "b": 1.0}),
        ("0.5 * a - b / 4", {"a": 0.5, "b": -0.25}),
        ("2 * (a + -b) * 3", {"a": 6.0, "b": -6.0}),
        ("(a + b) / 2", {"a": 0.5, "b": 0.5}),
    ],
)
def test_a_formula_is_a_weighted_sum(formula: str, weights: dict[str, float]) -> None:
    grader = {"type": "multi", "graders": {"a": score("a"), "b": score("b")}, "calculate_output": formula}
    assert dict(rewards_of(grader, "grader").models) == weights


@pytest.mark.parametrize(
    "formula",
    ["a * b", "max(a, b)", "a + 1", "", "a +", "1 / a", "a / 0", "c", "a ** 2", "__import__('os')", "(" * 300 + "a"],
)
def test_any_other_formula_is_refused(formula: str) -> None:
    grader = {"type": "multi", "graders": {"a": score("a"), "b": score("b")}, "calculate_output": formula}
    with pytest.raises(BadGrader) as refused:
        rewards_of(grader, "grader")
    assert refused.value.errors[0].location == "grader.calculate_output"


@pytest.mark.parametrize(
    "grader",
    [
        check("like", "{{item.answer}}"),
        check("eq", "it is {{item.answer}}"),
        check("eq", "x", input="{{item.answer}}"),
        {**score("a"), "input": [{"role": "user", "content": f"Grade this from 1 to 7: {OUTPUT}"}]},
        {
            "type": "multi",
            "graders": {"a": check("eq", "{{item.one}}"), "b": check("eq", "{{item.two}}")},
            "calculate_output": "a + b",
        },
        None,
        {"type": "rule"},
    ],
)
def test_what_a_run_cannot_reward_is_refused(grader: Any) -> None:
    with pytest.raises(BadGrader):
        rewards_of(grader, "grader")


def test_settings_that_nothing_follows_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedParameter, match=r"grader\.sampling_params"):
        rewards_of({**score("a"), "sampling_params": {"temperature": 0}}, "grader")
    with pytest.raises(UnsupportedParameter, match="label_model"):
        rewards_of({"type": "label_model"}, "grader")


def test_our_own_rules_and_the_answer_alone_are_taken() -> None:
    given = {"type": "rule", "rule": {"kind": "regex", "pattern": "please", "weight": 2}}
    assert rewards_of(given, "grader").rules == [{"kind": "regex", "pattern": "please", "weight": 2}]
    plain = {**score("a"), "input": [{"role": "user", "content": OUTPUT}]}
    assert rewards_of(plain, "grader").models == [("a", 1.0)]
