"""The run kinds that people start: training by each method, and every module of this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import get_args

from steerboard_contracts.fields import RunKind
from steerboard_contracts.methods import methods
from steerboard_contracts.specs.run_kind import RunKindSpec, training


@cache
def run_kinds() -> tuple[RunKindSpec, ...]:
    """In the order of lists: the methods, then the others."""
    others = [importlib.import_module(f"{__name__}.{module.name}").SPEC for module in pkgutil.iter_modules(__path__)]
    others.sort(key=lambda kind: (kind.place, kind.run))
    return (*(training(method) for method in methods().values()), *others)


def run_words() -> tuple[str, ...]:
    """`train`, `generate`, ...: what a recipe's `run` may be."""
    known = {kind.run for kind in run_kinds()}
    return tuple(word for word in get_args(RunKind) if word in known)


def kind_of(run: object, method: object) -> RunKindSpec | None:
    """None for what is not known here, such as a method that is not installed."""
    wanted = method if run == "train" else None
    return next((kind for kind in run_kinds() if kind.run == run and kind.method == wanted), None)
