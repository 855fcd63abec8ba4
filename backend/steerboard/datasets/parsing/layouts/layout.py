"""What a layout of another tool is: how its rows are recognised, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steerboard.datasets.parsing.arranged import Removed
from steerboard_files.records import Problem

Row = dict[str, Any]
Convert = Callable[[int, Row], Iterable[Row | Problem | Removed]]
"""(the record's place from 0, the record) -> the rows that it becomes, in names that the mapping knows."""


@dataclass(frozen=True)
class Layout:
    """`about`: what it is, for people. `find`: how to convert a file that begins with these rows, or None when it has
    another layout."""

    name: str
    about: str
    find: Callable[[Sequence[Row]], Convert | None]


def without(row: Row, *names: str) -> Row:
    """The other columns."""
    return {name: value for name, value in row.items() if name not in names}
