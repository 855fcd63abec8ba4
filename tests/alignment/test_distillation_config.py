"""What cannot be distilled is refused before anything runs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from steerboard_contracts.methods import needed_method

RULE = {"kind": "regex", "pattern": "a"}


def config_of(**changes):
    return needed_method("distillation").config.model_validate({"method": "distillation", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": 0.5}, "beta has no effect with divergence reverse_kl"),
        ({"divergence": "jsd", "beta": 1.0}, "less than 1"),
        ({"divergence": "sampled_reverse_kl", "on_policy": 0.5}, "needs on_policy 1"),
        ({"alpha": 0.5, "rules": [RULE]}, "needs answers of 2 or more"),
        ({"alpha": 0.5, "answers": 2, "on_policy": 0}, "needs on_policy above 0"),
        ({"alpha": 0, "answers": 2}, "greater than 0"),
        ({"refill": 1, "answers": 2}, "refill has no effect"),
        ({"staleness": 1, "engine": "vllm", "on_policy": 0.5}, "staleness needs alpha 1, on_policy 1"),
        ({"strategy": "zero3", "engine": "vllm"}, "strategy zero3 spreads the teacher's head"),
        ({"placement": {"reference": 1}}, "placement.reference puts elsewhere the teacher's head"),
        ({"lora": {"dropout": 0.1}}, "lora.dropout must be 0"),
    ],
)
def test_what_cannot_work_is_refused_with_the_config(changes, message):
    with pytest.raises(ValidationError, match=message):
        config_of(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"divergence": "jsd", "beta": 0.1, "on_policy": 0},
        {"divergence": "sampled_reverse_kl", "strategy": "zero3", "engine": "vllm"},
        {"divergence": "sampled_reverse_kl", "placement": {"reference": 1}},
        {"staleness": 1, "engine": "vllm"},
        {"alpha": 0.5, "answers": 2, "on_policy": 0.5},
    ],
)
def test_what_can_work_is_taken_and_comes_back_as_it_was(changes):
    config = config_of(**changes)
    assert type(config).model_validate(config.model_dump()) == config


@pytest.mark.parametrize(
    ("changes", "given", "fault"),
    [
        ({}, ("teacher",), None),
        ({}, ("teacher", "reward"), "rewards have no effect with alpha 1"),
        ({"rules": [RULE]}, ("teacher",), "rewards have no effect with alpha 1"),
        ({"rules": [{**RULE, "weight": 0}]}, ("teacher",), None),
        ({"reward_weights": [0]}, ("teacher", "reward"), None),
        ({"alpha": 0.5, "answers": 2}, ("teacher",), "nothing gives the answers a reward"),
        ({"alpha": 0.5, "answers": 2}, ("teacher", "reward"), None),
        ({"alpha": 0.5, "answers": 2, "reward_weights": [0]}, ("teacher", "reward"), "every reward has the weight 0"),
    ],
)
def test_a_reward_is_needed_where_it_has_a_weight_and_refused_where_it_has_none(changes, given, fault):
    message = config_of(**changes).input_fault(given)
    assert message == fault or (message is not None and message.startswith(str(fault)))


@pytest.mark.parametrize("kind", ["prompts", "preferences", "instructions", "labelled"])
def test_answers_off_the_policy_need_rows_that_have_one(kind):
    assert config_of().kind_fault(kind) is None
    fault = config_of(on_policy=0.5).kind_fault(kind)
    assert (fault is None) == (kind in ("instructions", "labelled"))
    assert fault is None or "give instructions or labelled rows, or set on_policy to 1" in fault
