"""Pydantic's complaints as faults of a recipe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from steerboard.recipes.document import Document
from steerboard.recipes.errors import Faults
from steerboard.recipes.places import Path
from steerboard_contracts.complaints import complaints


def add_validation_faults(
    document: Document,
    path: Path,
    error: ValidationError,
    model: type[BaseModel],
    faults: Faults,
    more: Iterable[str] = (),
) -> None:
    """One fault for each place. `path` is that of the mapping that was validated as `model`; `more` as for
    `complaints`."""
    given: Any = document.data
    for part in path:
        given = given[part]
    for one in complaints(error, given, model, more, document.budget.check):
        document.fault(faults, (*path, *one.place), one.message)
