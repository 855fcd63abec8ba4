"""Values that mean good or bad, and columns of them: a `label` may just as well be a topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_TRUE = {"true", "1", "1.0", "yes", "good", "desirable", "up"}
_FALSE = {"false", "0", "0.0", "-1", "-1.0", "no", "bad", "undesirable", "down"}


def as_thumb(value: Any) -> bool | None:
    """True or false, also where it is written as a word or a number; None for anything else."""
    if isinstance(value, str | int | float):
        word = str(value).strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def may_be_thumbs(values: Iterable[Any]) -> bool:
    """Whether a column with these values could hold thumbs: all of its numbers are, or one of its words is."""
    given = [value for value in values if value is not None and value != ""]
    numbers = [value for value in given if _is_number(value)]
    if any(as_thumb(value) is None for value in numbers):
        return False  # classes that are counted from 0
    return not given or any(as_thumb(value) is not None for value in given)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lstrip("+-").replace(".", "", 1).isdigit()
    return isinstance(value, int | float) and not isinstance(value, bool)
