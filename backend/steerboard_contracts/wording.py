"""Lists and counts in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def counted(number: float, what: str) -> str:
    """`1 epoch`, `2,000 epochs`, `0.5 epochs`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {what}{'' if number == 1 else 's'}"
