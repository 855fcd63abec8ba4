"""Every run kind has one description."""

from __future__ import annotations

import pkgutil
from importlib.util import find_spec
from typing import get_args

import pytest

from steerboard_contracts import run_kinds
from steerboard_contracts.fields import RunKind
from steerboard_contracts.run_kinds import (
    EVALUATION_PARTS,
    all_kinds,
    any_kind_of,
    kind_of,
    run_words,
    stage_modules,
    stages_of,
)


def test_every_kind_of_run_is_described() -> None:
    assert {kind.run for kind in all_kinds()} == set(get_args(RunKind))


def test_a_kind_that_does_not_train_is_a_module_with_its_config_and_its_description() -> None:
    module_of = {kind.run: kind.config.__module__ for kind in all_kinds() if kind.run != "train"}
    modules = {module.name for module in pkgutil.iter_modules(run_kinds.__path__)}
    assert module_of == {name: f"{run_kinds.__name__}.{name}" for name in modules}


def test_a_field_that_a_kind_is_described_by_is_one_of_its_config() -> None:
    for kind in all_kinds():
        named = {*kind.may_change, *kind.form, *kind.lists}
        named |= {slot.or_field for slot in kind.slots.values() if slot.or_field}
        named |= {"endpoint"} if kind.asks_endpoint == "named" else set()
        named |= {"evaluation"} if kind.run in EVALUATION_PARTS else set()
        assert named <= set(kind.config.model_fields), kind.word
        assert {*kind.lists.values(), *kind.without} <= set(kind.slots), kind.word


def test_every_kind_is_done_by_a_stage_an_endpoint_or_runs_of_its_own() -> None:
    for kind in all_kinds():
        ways = (kind.run in stage_modules(), kind.asks_endpoint == "always", kind.run in ("evaluate", "history"))
        assert sum(ways) == 1, kind.word
    for module in stage_modules().values():
        assert find_spec(module) is not None, module


def test_the_work_of_an_evaluation_is_that_of_every_stage_that_it_starts() -> None:
    assert {module.rpartition(".")[2] for module in stages_of("evaluate")} == {"answer", "compare", "reward"}


@pytest.mark.parametrize("run", EVALUATION_PARTS)
def test_what_an_evaluation_starts_is_described_and_offered_to_nobody(run: str) -> None:
    assert any_kind_of(run) is not None
    assert kind_of(run, None) is None
    assert run not in run_words()
