"""Pydantic's complaints as faults of a recipe: the place in the file, and words for people."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from steerboard.recipes.document import Document
from steerboard.recipes.errors import Faults, did_you_mean
from steerboard.recipes.places import Path


def add_validation_faults(
    document: Document, path: Path, error: ValidationError, known: list[str], faults: Faults
) -> None:
    """One fault for each field. `path` is that of the validated mapping, `known` its possible keys."""
    messages: dict[Path, list[str]] = {}
    got: dict[Path, str] = {}
    for problem in error.errors(include_url=False, include_context=False):
        document.budget.check()
        loc = problem["loc"]
        at = _existing(document, path, loc)
        if problem["type"] == "missing":
            message = f"needs `{loc[-1]}`"
        elif problem["type"] == "extra_forbidden":
            at = (*path, *loc)
            inner = known if len(loc) == 1 else []
            message = f"unknown key `{loc[-1]}`" + did_you_mean(str(loc[-1]), inner)
        else:
            message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
            got[at] = _shown(problem["input"])
        if message not in messages.setdefault(at, []):
            messages[at].append(message)
    for at, found in messages.items():
        document.fault(faults, at, " or ".join(found) + (f", got {got[at]}" if got.get(at) else ""))


def _existing(document: Document, path: Path, loc: tuple[int | str, ...]) -> Path:
    """The longest part of pydantic's location that is in the document; unions add names of their branches."""
    target: Any = document.data
    for part in path:
        target = target[part]
    at = path
    for part in loc:
        inside = (isinstance(target, dict) and part in target) or (
            isinstance(target, list) and isinstance(part, int) and part < len(target)
        )
        if not inside:
            break
        target = target[part]
        at = (*at, part)
    return at


def _shown(value: Any) -> str:
    """The wrong value, unless it is too long to help."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value)
    if len(shown) <= 60:
        return shown
    return "" if isinstance(value, dict | list) else shown[:57] + "..."
