"""Every run kind has one description."""

from __future__ import annotations

from typing import get_args

import pytest

from steerboard_contracts.fields import RunKind
from steerboard_contracts.run_kinds import all_kinds, any_kind_of, kind_of, run_words


def test_every_kind_of_run_is_described() -> None:
    assert {kind.run for kind in all_kinds()} == set(get_args(RunKind))


def test_a_field_that_a_kind_is_described_by_is_one_of_its_config() -> None:
    for kind in all_kinds():
        named = {*kind.may_change, *kind.without_effect, *kind.form, *kind.lists}
        named |= {"endpoint"} if kind.asks_endpoint == "named" else set()
        named |= {"evaluation"} if kind.of_evaluation else set()
        assert named <= set(kind.config.model_fields), kind.word


@pytest.mark.parametrize("run", ["answer", "reward", "judge", "compare"])
def test_what_an_evaluation_starts_is_described_and_offered_to_nobody(run: str) -> None:
    found = any_kind_of(run)
    assert found is not None
    assert found.of_evaluation
    assert kind_of(run, None) is None
    assert run not in run_words()
