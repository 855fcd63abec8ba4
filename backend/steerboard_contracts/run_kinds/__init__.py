"""The run kinds: training by each method, and every module of this package.

A module here is one kind: its config and `SPEC`. It is imported when it is needed, so that a stage reads the config of
its own kind and no other's.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter

from steerboard_contracts.fields import Config, RunKind
from steerboard_contracts.methods import methods
from steerboard_contracts.specs.run_kind import RunKindSpec, training
from steerboard_contracts.training import TrainingConfig

EVALUATION_PARTS: tuple[RunKind, ...] = ("answer", "compare", "judge", "reward")
"""Kinds of the runs that an evaluation starts, never a recipe or a launch form."""
UNLISTED: RunKind = "check_rows"
"""What the platform's own pages and commands ask for. It is in no list, and needs no device."""
ASKED_FOR: tuple[RunKind, ...] = ("push", "gguf", "history")
"""Kinds of runs that only an endpoint of their own starts, which knows more than a launch form or a recipe."""

_STAGES = "steerboard_workers.stages"
# Their work is that of other runs, an endpoint's, or of another trainer.
_WITHOUT_STAGE: tuple[RunKind, ...] = ("evaluate", "judge", "history")
# In the order of lists.
_OTHERS: tuple[RunKind, ...] = (
    "generate",
    "score",
    "grade",
    "combine",
    "select",
    "mix",
    "evaluate",
    "benchmark",
    "academic",
    "base",
    UNLISTED,
    *ASKED_FOR,
    *EVALUATION_PARTS,
)


@cache
def _other_kinds() -> tuple[RunKindSpec, ...]:
    return tuple(importlib.import_module(f"{__name__}.{name}").SPEC for name in _OTHERS)


@cache
def all_kinds() -> tuple[RunKindSpec, ...]:
    """The kinds in the order of lists: the methods, then the others, those that an evaluation starts among them."""
    return (*(training(method) for method in methods().values()), *_other_kinds())


@cache
def run_kinds() -> tuple[RunKindSpec, ...]:
    """The run kinds that people start."""
    return tuple(kind for kind in all_kinds() if kind.run not in (*EVALUATION_PARTS, UNLISTED, *ASKED_FOR))


def run_words() -> tuple[str, ...]:
    """`train`, `generate`, ...: what a recipe's `run` may be."""
    known = {kind.run for kind in run_kinds()}
    return tuple(word for word in get_args(RunKind) if word in known)


def kind_of(run: object, method: object) -> RunKindSpec | None:
    """One that people start. None for what is not known here, such as a method that is not installed."""
    return _look_up(run_kinds(), run, method)


def any_kind_of(run: object, method: object = None) -> RunKindSpec | None:
    """One that people or an evaluation start. None for what is not known here."""
    return _look_up(all_kinds(), run, method)


def described(config: Config) -> RunKindSpec:
    """The kind that it is the config of; of a valid config there is one."""
    spec = any_kind_of(run_of(config), getattr(config, "method", None))
    assert spec is not None, type(config)
    return spec


def run_of(config: Config) -> str:
    """The run kind that it is the config of."""
    return str(type(config).model_fields["run"].default)


def any_config(value: Any) -> Config:
    """The config of any run kind. Raises `ValueError`, of which Pydantic's `ValidationError` is one."""
    if isinstance(value, Config):
        return value
    if not isinstance(value, dict):
        raise ValueError("a config is an object")
    known = {str(kind.run): kind.config for kind in _other_kinds()}.get(str(value.get("run")))
    if known is not None:
        return known.model_validate(value)
    if "method" not in value:
        raise ValueError(f"unknown run kind {value.get('run')} with such a config")
    return _training_config().validate_python(value)


def stage_modules() -> dict[str, str]:
    """The module that does the work of each kind of run."""
    return {kind.run: f"{_STAGES}.{kind.run}" for kind in all_kinds() if kind.run not in _WITHOUT_STAGE}


def parts_of(kind: RunKindSpec) -> tuple[RunKind, ...]:
    """The kinds of the runs that do its work, where it is not a stage's."""
    return EVALUATION_PARTS if kind.run == "evaluate" else ()


def stages_of(run: str) -> list[str]:
    """The `stage_modules` that do the work of such a run: its own, or those of its parts."""
    modules = stage_modules()
    parts = EVALUATION_PARTS if run == "evaluate" else (run,)
    return [modules[part] for part in parts if part in modules]


@cache
def _training_config() -> TypeAdapter[TrainingConfig]:
    from steerboard_contracts.train_config import TrainConfig

    return TypeAdapter(TrainConfig)


def _look_up(kinds: tuple[RunKindSpec, ...], run: object, method: object) -> RunKindSpec | None:
    wanted = method if run == "train" else None
    return next((kind for kind in kinds if kind.run == run and kind.method == wanted), None)
