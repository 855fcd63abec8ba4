"""Layouts of other tools' files. Each is recognised by its first rows and becomes rows that the mapping knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from steerboard.datasets.parsing.arranged import Arranged
from steerboard.datasets.parsing.layouts.annotations import ANNOTATIONS
from steerboard.datasets.parsing.layouts.function_calls import FUNCTION_CALLS
from steerboard.datasets.parsing.layouts.graded import GRADED
from steerboard.datasets.parsing.layouts.histories import HISTORIES
from steerboard.datasets.parsing.layouts.judged_pairs import JUDGED_PAIRS, SIGNED
from steerboard.datasets.parsing.layouts.layout import Convert, Layout
from steerboard.datasets.parsing.layouts.pairs import PAIRS
from steerboard.datasets.parsing.layouts.steps import STEPWISE
from steerboard.datasets.parsing.layouts.tables import TABLES
from steerboard.datasets.parsing.layouts.trees import TREES
from steerboard.datasets.parsing.layouts.winners import WINNERS

__all__ = ["STEPS", "TABLES", "converted", "find_layout"]

# One of each may apply, in this order: a table has rows, a row of an annotation tool has answers.
STEPS: tuple[tuple[Layout, ...], ...] = (
    TABLES,
    ANNOTATIONS,
    (*PAIRS, *FUNCTION_CALLS, SIGNED, *WINNERS, *JUDGED_PAIRS, *GRADED, *HISTORIES, *TREES, *STEPWISE),
)
_TRIED = 20


def find_layout(
    step: Sequence[Layout], rows: Sequence[dict[str, Any]], named: Collection[str]
) -> tuple[Layout, Convert] | None:
    """The first layout that a file with these first rows has, and how to convert it. None where that would take away a
    `named` column."""
    for layout in step:
        convert = layout.find(rows) if rows else None
        if convert is not None:
            return None if named and _loses(convert, rows[:_TRIED], named) else (layout, convert)
    return None


def _loses(convert: Convert, rows: Sequence[dict[str, Any]], named: Collection[str]) -> bool:
    before = {name for row in rows for name in row}
    after = {
        name for at, row in enumerate(rows) for made in convert(at, row) if isinstance(made, dict) for name in made
    }
    return not before.isdisjoint(set(named) - after)


def converted(
    records: Iterable[tuple[str | None, Arranged]], convert: Convert, *, numbered: bool
) -> Iterator[tuple[str | None, Arranged]]:
    """Records as their layout makes them. `numbered`: all rows are from one record, and counted from 1."""
    for place, (label, (number, record)) in enumerate(records):
        if not isinstance(record, dict):
            yield label, (number, record)
            continue
        for row, made in enumerate(convert(place, record), 1):
            yield label, (row if numbered else number, made)
