"""Whole files in one JSON object: a table by columns, as pandas writes it, or a list of rows below a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from steerboard.datasets.formats.records import Problem, Record, Removed
from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row
from steerboard.datasets.parsing.mapping import ALIASES
from steerboard.datasets.parsing.messages import is_message

_NAMES = ("data", "rows", "examples", "instances", "items", "records", "samples")
# Next to one of these a list is a part of one row.
_FIELDS = {alias for aliases in ALIASES.values() for alias in aliases if alias != "source"}


def rows_of_columns(records: Iterable[Record]) -> Iterator[Record]:
    """The rows of a file whose only record is a table by columns, counted from 1; other records as they are."""
    left = iter(records)
    first = list(islice(left, 2))
    rows = [record for _, record in first if isinstance(record, dict)]
    convert = _by_columns(rows) if len(first) == 1 else None
    if convert is None:
        yield from chain(first, left)
        return
    for number, row in enumerate(convert(0, rows[0]), 1):
        if not isinstance(row, Removed):
            yield number, row


def _by_columns(rows: Sequence[Row]) -> Convert | None:
    if len(rows) != 1:
        return None
    columns = list(rows[0].values())
    if columns and all(isinstance(column, dict) and column for column in columns):
        indices = [list(column) for column in columns]
        fits = all(index == indices[0] and all(map(str.isdigit, index)) for index in indices)
        return _from_index if fits else None
    lists = all(isinstance(column, list) and len(column) == len(columns[0]) > 0 for column in columns)
    # One answer list a side is a row of its own, next to the text of its prompt; here no column is a text.
    return _from_lists if columns and lists and not any(map(_are_messages, columns)) else None


def _from_index(_: int, table: Row) -> Iterator[Row]:
    for index in next(iter(table.values())):
        yield {name: column[index] for name, column in table.items()}


def _from_lists(_: int, table: Row) -> Iterator[Row]:
    for values in zip(*table.values(), strict=True):
        yield dict(zip(table, values, strict=True))


def _split(rows: Sequence[Row]) -> Convert | None:
    """pandas' orient="split"."""
    fits = len(rows) == 1 and {"columns", "data"} <= rows[0].keys() <= {"columns", "data", "index"}
    return _from_split if fits and all(isinstance(part, list) for part in rows[0].values()) else None


def _from_split(_: int, table: Row) -> Iterable[Row | Problem | Removed]:
    names = table["columns"]
    for values in table["data"]:
        if isinstance(values, list) and len(values) == len(names):
            yield dict(zip(map(str, names), values, strict=True))
        else:
            yield Problem("bad_row", f"is not a list of {len(names)} values, as many as there are columns")


def _below_a_name(rows: Sequence[Row]) -> Convert | None:
    if len(rows) != 1:
        return None
    lists = [name for name, value in rows[0].items() if _are_rows(value)]
    named = [name for name in lists if name in _NAMES] or lists
    others = rows[0].keys() - set(named)
    if len(named) != 1 or (others and (named[0] not in _NAMES or others & _FIELDS)):
        return None
    return lambda _, row: map(_unwrapped, row[named[0]])


def _unwrapped(row: Any) -> Row | Problem:
    """A row, also of the viewer of the hub: {row_idx, row, truncated_cells}."""
    if not isinstance(row, dict):
        return Problem("bad_row", "is not an object")
    if "row_idx" in row and isinstance(row.get("row"), dict):
        if row.get("truncated_cells"):
            return Problem("bad_row", "was cut by the viewer of the hub: fetch the dataset itself")
        inner: Row = row["row"]
        return inner
    return row


def _are_rows(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value) and not _are_messages(value)
    )


def _are_messages(column: Any) -> bool:
    return any(map(is_message, column))


TABLES = (
    Layout("split table", 'JSON of pandas with orient="split"', _split),
    Layout("rows below a name", 'one JSON object whose only list are the rows, such as {"data": [...]}', _below_a_name),
    Layout("table by columns", "JSON by columns, such as pandas' to_json() writes", _by_columns),
)
