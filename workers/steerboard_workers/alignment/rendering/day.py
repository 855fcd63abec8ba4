"""The day that chat templates write as today's: the one on which the run of this process was launched, so that a
resumed run, and each of its shards, has the same tokens."""

from __future__ import annotations

from datetime import date

_day: date | None = None


def pin_day(day: date | None) -> None:
    """Fixes the day of this process. None: today is the real one."""
    global _day
    _day = day


def pinned_day() -> date | None:
    return _day
