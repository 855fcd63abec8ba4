"""The run kinds: training by each method, and every module of this package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import get_args

from steerboard_contracts.configs import run_of
from steerboard_contracts.fields import Config, RunKind
from steerboard_contracts.methods import methods
from steerboard_contracts.specs.run_kind import RunKindSpec, training

_STAGES = "steerboard_workers.stages"


@cache
def all_kinds() -> tuple[RunKindSpec, ...]:
    """In the order of lists: the methods, then the others, those that an evaluation starts among them."""
    others = [importlib.import_module(f"{__name__}.{module.name}").SPEC for module in pkgutil.iter_modules(__path__)]
    others.sort(key=lambda kind: (kind.place, kind.run))
    return (*(training(method) for method in methods().values()), *others)


@cache
def run_kinds() -> tuple[RunKindSpec, ...]:
    """The run kinds that people start."""
    return tuple(kind for kind in all_kinds() if not (kind.of_evaluation or kind.unlisted))


def run_words() -> tuple[str, ...]:
    """`train`, `generate`, ...: what a recipe's `run` may be."""
    known = {kind.run for kind in run_kinds()}
    return tuple(word for word in get_args(RunKind) if word in known)


def kind_of(run: object, method: object) -> RunKindSpec | None:
    """One that people start. None for what is not known here, such as a method that is not installed."""
    return _found(run_kinds(), run, method)


def any_kind_of(run: object, method: object = None) -> RunKindSpec | None:
    """One that people or an evaluation start. None for what is not known here."""
    return _found(all_kinds(), run, method)


def described(config: Config) -> RunKindSpec:
    """The kind that it is the config of; of a valid config there is one."""
    found = any_kind_of(run_of(type(config)), getattr(config, "method", None))
    assert found is not None, type(config)
    return found


def kinds_that(has: Callable[[RunKindSpec], bool]) -> tuple[RunKind, ...]:
    """The kinds of run that it holds for, as runs carry them: training has one, whatever the method."""
    return tuple(dict.fromkeys(kind.run for kind in all_kinds() if has(kind)))


def trains(run: object) -> bool:
    """Whether runs of this kind train a model, by whatever method."""
    return run in kinds_that(lambda kind: kind.trains)


def evaluates(run: object) -> bool:
    """Whether the work of runs of this kind is an evaluation."""
    return run in kinds_that(lambda kind: kind.evaluates)


def stage_modules() -> dict[str, str]:
    """By kind of run, the module that does its work."""
    return {kind.run: f"{_STAGES}.{kind.stage}" for kind in all_kinds() if kind.stage is not None}


def parts_of(kind: RunKindSpec) -> tuple[str, ...]:
    """The kinds of the runs that do its work, where it is not a stage's."""
    return kinds_that(lambda one: one.of_evaluation) if kind.evaluates else ()


def stages_of(run: str) -> list[str]:
    """The `stage_modules` that do the work of such a run: its own, or those of its parts."""
    modules = stage_modules()
    parts = [part for kind in all_kinds() if kind.run == run for part in parts_of(kind)]
    return [modules[part] for part in parts or [run] if part in modules]


def _found(kinds: tuple[RunKindSpec, ...], run: object, method: object) -> RunKindSpec | None:
    wanted = method if trains(run) else None
    return next((kind for kind in kinds if kind.run == run and kind.method == wanted), None)
