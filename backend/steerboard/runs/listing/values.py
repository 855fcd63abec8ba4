"""What the values of a filter mean: numbers, times, durations and choices. Each raises `BadFilter` at the value."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable

from steerboard.platform.filters.errors import BadFilter
from steerboard.platform.filters.expression import Word
from steerboard.runs.listing.fields import nearest

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"([0-9]*\.?[0-9]+)([smhdw])")
# A duration beyond a century is no date that a database can count back to.
_LONGEST = 100 * 366 * 86400.0


def as_number(value: Word) -> float | None:
    """The number that a value is, if it is a finite one."""
    text = value.text
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def number(field: Word, value: Word) -> float:
    parsed = as_number(value)
    if parsed is None:
        raise BadFilter.at_word(f"`{field.text}` is compared with a number, and `{value.text}` is none", value)
    return parsed


def duration(field: Word, value: Word) -> dt.timedelta:
    """Seconds, or a number with a unit: `90m`."""
    seconds = _seconds(value)
    if seconds is None:
        raise BadFilter.at_word(
            f"`{field.text}` is compared with a duration, and `{value.text}` is none",
            value,
            hint="Write seconds, or 90s, 90m, 1.5h, 2d, 1w.",
        )
    return dt.timedelta(seconds=max(-_LONGEST, min(seconds, _LONGEST)))


def _seconds(value: Word) -> float | None:
    with_unit = _DURATION.fullmatch(value.text)
    return float(with_unit[1]) * _UNITS[with_unit[2]] if with_unit else as_number(value)


def time(field: Word, value: Word, now: dt.datetime) -> dt.datetime:
    """A date, a time, or how long ago: `7d`. In UTC unless the value has a zone."""
    ago = _DURATION.fullmatch(value.text)
    if ago:
        return now - dt.timedelta(seconds=min(float(ago[1]) * _UNITS[ago[2]], _LONGEST))
    try:
        parsed = dt.datetime.fromisoformat(value.text)
        parsed = parsed if parsed.tzinfo else parsed.replace(tzinfo=dt.UTC)
        return parsed.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise BadFilter.at_word(
            f"`{field.text}` is compared with a time, and `{value.text}` is none",
            value,
            hint="Write 2026-11-30, 2026-11-30T12:00, or how long ago: 12h, 7d.",
        ) from None


def one_of(field: Word, value: Word, known: Iterable[str]) -> str:
    names = list(known)
    if value.text not in names:
        near = nearest(value.text, names)
        suggestion = f"; did you mean `{near[0]}`?" if near else ""
        listed = f"Known are {', '.join(names)}." if len(names) <= 12 else None
        raise BadFilter.at_word(
            f"no `{field.text}` is called `{value.text}`{suggestion}", value, suggestions=near, hint=listed
        )
    return value.text
