"""How much of what is stored one answer may hold: rows can have texts of megabytes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any, TypeVar, cast

from sqlalchemy import Result, ScalarResult
from sqlalchemy.orm import DeclarativeBase

Row = TypeVar("Row")

# The size of a page's texts as they are stored. In memory they are a few times that while they are read.
PAGE_BYTES = 16 << 20
# A row above this is shown in part.
ROW_BYTES = 256 << 10
# From the database, for `yield_per`: a page may end after any of them.
ROWS_AT_ONCE = 4
_VALUE_BYTES = 8


def take(rows: Result[Any] | ScalarResult[Row], limit: int) -> tuple[list[Row], bool]:
    """The first rows, `limit` at most and until they have `PAGE_BYTES`, and whether there are more.

    `rows` is closed. At least one row is taken, whatever its size."""
    with closing(rows):
        return take_while_small(cast(Iterable[Row], rows), limit)


def take_while_small(rows: Iterable[Row], limit: int) -> tuple[list[Row], bool]:
    """The same of anything."""
    page: list[Row] = []
    size = 0
    for row in rows:
        if len(page) == limit or (page and size >= PAGE_BYTES):
            return page, True
        page.append(row)
        size += weight(row)
    return page, False


def weight(value: Any) -> int:
    """The approximate number of bytes of a row, or of a value of one, as JSON."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + weight(part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return _VALUE_BYTES + sum(map(weight, value))
    if isinstance(value, DeclarativeBase):
        return sum(weight(part) for name, part in vars(value).items() if name != "_sa_instance_state")
    return _VALUE_BYTES


def shown_part(fields: dict[str, Any]) -> dict[str, Any]:
    """The beginning of each of a large row's fields: texts end with an ellipsis, lists end early."""
    return {name: _Cut(ROW_BYTES // 4 // len(fields)).of(value) for name, value in fields.items()}


class _Cut:
    def __init__(self, size: int) -> None:
        self._left = size

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            kept = value[: max(0, self._left)]
            self._left -= len(kept)
            return kept if len(kept) == len(value) else f"{kept}…"
        if isinstance(value, dict):
            return {key: self._counted(part, len(key)) for key, part in value.items() if self._left > 0}
        if isinstance(value, list):
            return [self._counted(part, _VALUE_BYTES) for part in value if self._left > 0]
        return value

    def _counted(self, part: Any, size: int) -> Any:
        self._left -= size
        return self.of(part)
