"""Every run kind has one description."""

from __future__ import annotations

from importlib.util import find_spec
from typing import get_args

import pytest

from steerboard_contracts.fields import RunKind
from steerboard_contracts.run_kinds import all_kinds, any_kind_of, kind_of, run_words, stage_modules, stages_of


def test_every_kind_of_run_is_described() -> None:
    assert {kind.run for kind in all_kinds()} == set(get_args(RunKind))


def test_a_field_that_a_kind_is_described_by_is_one_of_its_config() -> None:
    for kind in all_kinds():
        named = {*kind.may_change, *kind.without_effect, *kind.form, *kind.lists, *kind.written_out.values()}
        named |= {"endpoint"} if kind.asks_endpoint == "named" else set()
        named |= {"evaluation"} if kind.of_evaluation else set()
        assert named <= set(kind.config.model_fields), kind.word
        taken_in = {*kind.lists.values(), *kind.written_out} | ({kind.resumes_with} if kind.resumes_with else set())
        assert taken_in <= set(kind.slots), kind.word


def test_every_kind_is_done_by_a_stage_an_endpoint_or_runs_of_its_own() -> None:
    for kind in all_kinds():
        ways = (kind.stage is not None, kind.asks_endpoint == "always", kind.evaluates)
        assert sum(ways) == 1, kind.word
    for module in stage_modules().values():
        assert find_spec(module) is not None, module


def test_the_work_of_an_evaluation_is_that_of_every_stage_that_it_starts() -> None:
    evaluation = next(kind for kind in all_kinds() if kind.evaluates)
    started = {kind.stage for kind in all_kinds() if kind.of_evaluation and kind.stage is not None}
    assert {module.rpartition(".")[2] for module in stages_of(evaluation.run)} == started


@pytest.mark.parametrize("run", ["answer", "reward", "judge", "compare"])
def test_what_an_evaluation_starts_is_described_and_offered_to_nobody(run: str) -> None:
    found = any_kind_of(run)
    assert found is not None
    assert found.of_evaluation
    assert kind_of(run, None) is None
    assert run not in run_words()
