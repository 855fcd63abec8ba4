"""The run kinds: training by each method, and every module of this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import get_args

from steerboard_contracts.fields import RunKind
from steerboard_contracts.methods import methods
from steerboard_contracts.specs.run_kind import RunKindSpec, training


@cache
def all_kinds() -> tuple[RunKindSpec, ...]:
    """In the order of lists: the methods, then the others, those that an evaluation starts among them."""
    others = [importlib.import_module(f"{__name__}.{module.name}").SPEC for module in pkgutil.iter_modules(__path__)]
    others.sort(key=lambda kind: (kind.place, kind.run))
    return (*(training(method) for method in methods().values()), *others)


@cache
def run_kinds() -> tuple[RunKindSpec, ...]:
    """Those that people start."""
    return tuple(kind for kind in all_kinds() if not kind.of_evaluation)


def run_words() -> tuple[str, ...]:
    """`train`, `generate`, ...: what a recipe's `run` may be."""
    known = {kind.run for kind in run_kinds()}
    return tuple(word for word in get_args(RunKind) if word in known)


def kind_of(run: object, method: object) -> RunKindSpec | None:
    """One that people start. None for what is not known here, such as a method that is not installed."""
    return _found(run_kinds(), run, method)


def any_kind_of(run: object, method: object = None) -> RunKindSpec | None:
    """Likewise, or one that an evaluation starts."""
    return _found(all_kinds(), run, method)


def _found(kinds: tuple[RunKindSpec, ...], run: object, method: object) -> RunKindSpec | None:
    wanted = method if run == "train" else None
    return next((kind for kind in kinds if kind.run == run and kind.method == wanted), None)
