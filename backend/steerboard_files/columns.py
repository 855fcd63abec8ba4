"""Files whose only object is a table by columns, as pandas writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from steerboard_files.records import Record

Row = dict[str, Any]


def rows_of_columns(records: Iterable[Record]) -> Iterator[Record]:
    """The rows of a file whose only record is a table by columns, counted from 1; other records as they are."""
    left = iter(records)
    first = list(islice(left, 2))
    objects = [record for _, record in first if isinstance(record, dict)]
    convert = by_columns(objects) if len(first) == 1 else None
    if convert is None:
        yield from chain(first, left)
    else:
        yield from enumerate(convert(0, objects[0]), 1)


def by_columns(rows: Sequence[Row]) -> Callable[[int, Row], Iterator[Row]] | None:
    """How to read the rows of the only object of a file, (its place, the object) -> rows; None where it is no table by
    columns."""
    if len(rows) != 1:
        return None
    columns = list(rows[0].values())
    if columns and all(isinstance(column, dict) and column for column in columns):
        indices = [list(column) for column in columns]
        fits = all(index == indices[0] and all(map(str.isdigit, index)) for index in indices)
        return _from_index if fits else None
    lists = all(isinstance(column, list) and len(column) == len(columns[0]) > 0 for column in columns)
    # One answer list a side is a row of its own, next to the text of its prompt; here no column is a text.
    return _from_lists if columns and lists and not any(map(are_messages, columns)) else None


def are_messages(values: Iterable[Any]) -> bool:
    """Whether one of them is a message."""
    return any(map(is_message, values))


def is_message(value: Any) -> bool:
    """Whether a value has who wrote it and what, under the names of OpenAI or of ShareGPT."""
    return isinstance(value, dict) and ({"role", "content"} <= value.keys() or {"from", "value"} <= value.keys())


def _from_index(_: int, table: Row) -> Iterator[Row]:
    for index in next(iter(table.values())):
        yield {name: column[index] for name, column in table.items()}


def _from_lists(_: int, table: Row) -> Iterator[Row]:
    for values in zip(*table.values(), strict=True):
        yield dict(zip(table, values, strict=True))
