"""Samples whose label is turned: the sides of a pair, or a thumb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _sides_changed(sample: dict[str, Any]) -> dict[str, Any]:
    fields = {**sample, "chosen": sample["rejected"], "rejected": sample["chosen"]}
    fields.pop("margin", None)
    return fields


def _thumb_turned(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "desirable": not sample["desirable"]}


# By kind.
FLIPPED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "preferences": _sides_changed,
    "unpaired": _thumb_turned,
}
