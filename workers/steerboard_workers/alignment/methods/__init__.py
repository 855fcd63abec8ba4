"""The worker's halves of the training methods, each imported only by a run that needs it."""

from __future__ import annotations

import importlib
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.training_method import TrainingMethod


def training_of(config: TrainingConfig) -> TrainingMethod[Any]:
    """Raises `BadInput` (`unknown_method`, `method_not_importable`)."""
    spec = needed_method(config.method)
    module, _, name = spec.training.partition(":")
    try:
        method = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BadInput(
            f"the worker's half of {spec.name} cannot be imported: {error}",
            code="method_not_importable",
            hint=f"Install what {spec.package or 'it'} needs on this worker.",
        ) from error
    if not (isinstance(method, type) and issubclass(method, TrainingMethod)):
        raise BadInput(f"{spec.training} is not a subclass of TrainingMethod", code="method_not_importable")
    return method(config)
