"""A condition is read, written and stored one way, and a plain number is the simplest one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from steerboard_contracts.conditions.condition import Condition, varied
from steerboard_contracts.conditions.format import Attribute, ConditionFormat, condition_prompt
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import ModelInfo

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,10}", fullmatch=True)
VALUES = st.floats(allow_nan=False, allow_infinity=False)
STEERED = ConditionFormat(
    attributes=(
        Attribute(name="helpfulness", low=0, high=4, step=1, decimals=0, default=4),
        Attribute(name="verbosity", low=0, high=4, step=0.5, decimals=1),
    )
)


class Holder(BaseModel):
    score: Condition | None = None


@given(st.dictionaries(NAMES, VALUES, max_size=6))
@example({"rm_score": -0.0})
@example({})
def test_what_is_written_reads_back(values: dict[str, float]) -> None:
    condition = Condition.of(values)
    assert condition.values == values
    assert list(condition.values) == list(values)
    for stored in (condition.text, condition.plain(), json.loads(condition.model_dump_json())):
        assert Condition.model_validate(stored) == condition


@given(VALUES)
def test_a_number_is_stored_and_given_back_as_that_number(number: float) -> None:
    stored = json.loads(Holder.model_validate({"score": number}).model_dump_json())
    assert stored == {"score": number}
    assert type(stored["score"]) is float


def test_attributes_are_a_text_in_their_order() -> None:
    given = ("verbosity:2, helpfulness: 4.0", {"verbosity": 2, "helpfulness": 4})
    assert {Condition.model_validate(value).text for value in given} == {"verbosity:2,helpfulness:4"}
    assert Holder.model_validate({"score": {"a": 1}}).model_dump() == {"score": "a:1"}


@pytest.mark.parametrize(
    "given",
    [
        *(True, [1], "high", "a", "a:", ":1", "a:1,", "a:1,a:2", "a:nan", "a:1e999", "a b:1", "a\nb:1", "{{x}}:1"),
        *({"a": True}, {"a": None}, {"a": []}, {1: 2}, float("inf"), "a:1,5", "x" * 5000),
        {f"a{number}": 1 for number in range(33)},
    ],
)
def test_what_is_no_condition_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        Condition.model_validate(given)


@given(VALUES)
@example(-0.004)
@example(-0.05)
def test_the_papers_score_is_clamped_quantised_and_never_minus_zero(number: float) -> None:
    form = ConditionFormat.of_score()
    written = form.text(form.resolve(Condition.of({"rm_score": number})))
    assert written == f"{float(written):.2f}" != "-0.00"
    assert abs(float(written) - min(5, max(-5, number))) <= 0.05 + 1e-9
    assert condition_prompt(written) == f" <rm_score> {written}"


def test_zero_has_no_sign() -> None:
    assert Attribute(name="a", step=0.1, decimals=0).text(-0.1) == "0"
    assert Holder.model_validate({"score": -0.0}).model_dump_json() == '{"score":0.0}'


def test_several_attributes_are_written_in_the_policys_order_without_those_not_asked_for() -> None:
    def written(asked: Any) -> str:
        return STEERED.text(STEERED.resolve(None if asked is None else Condition.model_validate(asked)))

    assert written("verbosity:1.3,helpfulness:9") == "helpfulness:4,verbosity:1.5"
    both = Condition.model_validate("verbosity:1.3,helpfulness:9")
    assert STEERED.resolve(both).text == "helpfulness:9,verbosity:1.3"
    assert written({"verbosity": 0}) == "verbosity:0.0"
    assert written(None) == "helpfulness:4"
    assert written("") == ""
    assert condition_prompt(written("helpfulness:2")) == " helpfulness:2"


@pytest.mark.parametrize(("asked", "words"), [("humour:3", "asked for humour"), (5, "asked for 5")])
def test_an_attribute_that_the_policy_does_not_know_is_refused(asked: Any, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        STEERED.resolve(Condition.model_validate(asked))
    assert refused.value.code == "unknown_attribute"
    assert words in refused.value.detail
    assert "helpfulness, verbosity" in (refused.value.hint or "")


def test_a_number_asks_for_the_only_attribute_whatever_its_name() -> None:
    form = ConditionFormat(attributes=(Attribute(name="quality", step=1, decimals=0),))
    assert form.text(form.resolve(Condition.model_validate(3))) == "quality:3"


def test_a_model_of_a_former_release_is_asked_with_its_score() -> None:
    stored = {"role": "policy", "architecture": "x", "parameters": 1, "max_length": 9}
    score = {"score_format": {"limit": 3.0, "step": 0.5}, "default_score": 2.0}
    info = ModelInfo.model_validate({**stored, **score})
    assert info.condition == ConditionFormat.of_score(3.0, 0.5, 2.0)
    again = json.loads(info.model_dump_json())
    assert {name: again[name] for name in score} == score, "and former programs read what is written now"
    assert ModelInfo.model_validate(again) == info
    assert ModelInfo.model_validate({**stored, "score_format": None}).condition is None


def test_a_curve_is_along_the_one_attribute_that_differs() -> None:
    def of(*given: Any) -> list[float] | None:
        return varied(Condition.model_validate(value) for value in given)

    assert of(5, -5) == [5, -5]
    assert of("a:1,b:2", "b:3,a:1") == [2, 3]
    assert of("a:1,b:2", "a:2,b:3") is None
    assert of("a:1", "b:1") is None
    assert of(1, 1) is None
    assert of() is None
