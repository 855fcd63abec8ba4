"""Settings and figures of a run as the dashboard writes them."""

from __future__ import annotations

from typing import Any


def in_words(value: Any) -> str:
    """An item of a list a line where it is nested, the fields of an object by name; what is not set is left out."""
    if value is None:
        return "none"
    if isinstance(value, list):
        nested = any(isinstance(item, dict | list) for item in value)
        return ("\n" if nested else ", ").join(map(in_words, value)) or "none"
    if isinstance(value, dict):
        given = [(name, field) for name, field in value.items() if name != "kind" and field is not None]
        fields = ", ".join(
            f"{name} ({in_words(field)})" if isinstance(field, dict | list) else f"{name} {in_words(field)}"
            for name, field in given
        )
        return ": ".join(part for part in (str(value.get("kind") or ""), fields) if part) or "defaults"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def time(seconds: float) -> str:
    """Seconds of devices as `4.2 s`, `3 min 20 s` or `2 h 5 min`."""
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < 100:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
