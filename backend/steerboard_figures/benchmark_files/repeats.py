"""Rows about one thing: the newest counts, and of rows that no time orders a user decides which one does."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

Repeats = Literal["first", "last", "all"]
"""Which of rows about one thing in no order of time counts: the first, the last, or (of battles) each."""

UNORDERED = "repeated with other verdicts in no order of time (--repeats first or last decides)"


@dataclass(frozen=True, slots=True)
class Settled(Generic[T, Key]):
    """`kept`: one row of each thing, in the order of the rows; `superseded`: how many rows others take the place of;
    `unordered`: the things whose rows have several verdicts, and no time that decides between them."""

    kept: list[T]
    superseded: int
    unordered: list[Key]


def settled(
    rows: Sequence[T],
    key_of: Callable[[T], Key],
    time_of: Callable[[T], float | None],
    value_of: Callable[[T], Hashable],
    repeats: Repeats | None,
) -> Settled[T, Key]:
    """Keeps the newest of rows with one `key_of`; rows without a time are in no order with others. `value_of`: the
    verdict, None for one that was not parsed, which contradicts no other. Copies of one verdict need no order. Of
    several verdicts in no order one is kept that depends on the key alone, so the order of a file changes no figure."""
    kept, unordered = [], []
    for key, places in _alike(rows, key_of).items():
        latest = _latest(rows, places, time_of)
        timed = [place for place in latest if time_of(rows[place]) is not None]
        values = {value for place in latest if (value := value_of(rows[place])) is not None}
        if len(values) > 1 and repeats not in ("first", "last"):
            unordered.append(key)
            drawn = _drawn(key, values)
            kept.append(next(place for place in latest if value_of(rows[place]) == drawn))
        elif repeats == "first":
            kept.append(latest[0])
        elif len(values) > 1:
            kept.append(latest[-1])
        else:
            newest = timed or latest
            kept.append(([place for place in newest if value_of(rows[place]) is not None] or newest)[-1])
    return Settled([rows[place] for place in sorted(kept)], len(rows) - len(kept), unordered)


def votes(
    rows: Sequence[T],
    key_of: Callable[[T], Hashable],
    time_of: Callable[[T], float | None],
    repeats: Repeats | None,
) -> tuple[list[T], int, int]:
    """(rows that count, how many newer ones take the place of, how many repeat another in no order of time and count).

    Votes on one thing may be as many as there are rows, equal ones of one second included: only an older one is
    superseded, and with `repeats` all not even that.
    """
    kept: list[int] = []
    repeated = 0
    for places in _alike(rows, key_of).values():
        latest = places if repeats == "all" else _latest(rows, places, time_of)
        chosen = {"first": latest[:1], "last": latest[-1:]}.get(repeats or "", latest)
        repeated += len(chosen) - 1
        kept += chosen
    return [rows[place] for place in sorted(kept)], len(rows) - len(kept), repeated


def _drawn(key: Hashable, values: Collection[Hashable]) -> Hashable:
    """One of the values, neither the best nor the worst of every key."""
    return sorted(values, key=_written)[zlib.crc32(_written(key).encode()) % len(values)]


def _written(value: object) -> str:
    """The value as text; the items of a set are in no order of their own."""
    if isinstance(value, tuple | frozenset):
        items = [_written(item) for item in value]
        return ", ".join(items if isinstance(value, tuple) else sorted(items))
    return repr(value)


def _alike(rows: Sequence[T], key_of: Callable[[T], Key]) -> dict[Key, list[int]]:
    places: dict[Key, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(key_of(row), []).append(place)
    return places


def _latest(rows: Sequence[T], places: Sequence[int], time_of: Callable[[T], float | None]) -> list[int]:
    """The rows that no other is known to be newer than."""
    times = {place: time_of(rows[place]) for place in places}
    newest = max((at for at in times.values() if at is not None), default=None)
    return [place for place, at in times.items() if at is None or at == newest]
