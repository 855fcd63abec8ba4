"""The configs of the run kinds: every module of this package has one, `CONFIG`, and training's come from `methods`.

The class is looked up when a config is read. So the source of a stage refers to its own config alone, and a change to
another kind's leaves its finished runs reusable.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from steerboard_contracts.fields import Config
from steerboard_contracts.training import TrainingConfig


def run_of(config: type[Config]) -> str:
    """The run kind that it is the config of."""
    return str(config.model_fields["run"].default)


@cache
def configs() -> Mapping[str, type[Config]]:
    """By run kind, without training, which has one for each method."""
    found = [importlib.import_module(f"{__name__}.{module.name}").CONFIG for module in pkgutil.iter_modules(__path__)]
    return {run_of(config): config for config in found}


@cache
def _training() -> TypeAdapter[TrainingConfig]:
    from steerboard_contracts.train_config import TrainConfig

    return TypeAdapter(TrainConfig)


def any_config(value: Any) -> Config:
    """The config of any run kind. Raises `ValueError`, of which Pydantic's `ValidationError` is one."""
    if isinstance(value, Config):
        return value
    if not isinstance(value, dict):
        raise ValueError("a config is an object")
    known = configs().get(str(value.get("run")))
    if known is not None:
        return known.model_validate(value)
    if "method" not in value:
        raise ValueError(f"unknown run kind {value.get('run')} with such a config")
    return _training().validate_python(value)
