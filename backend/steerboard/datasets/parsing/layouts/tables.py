"""Whole files in one JSON object: a table by columns, as pandas writes it, or a list of rows below a name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from steerboard.datasets.parsing.arranged import Removed
from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row
from steerboard.datasets.parsing.mapping import ALIASES
from steerboard_files.columns import are_messages, by_columns
from steerboard_files.records import Problem

_NAMES = ("data", "rows", "examples", "instances", "items", "records", "samples")
# Next to one of these a list is a part of one row.
_FIELDS = {alias for aliases in ALIASES.values() for alias in aliases if alias != "source"}


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
        isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value) and not are_messages(value)
    )


TABLES = (
    Layout("split table", 'JSON of pandas with orient="split"', _split),
    Layout("rows below a name", 'one JSON object whose only list are the rows, such as {"data": [...]}', _below_a_name),
    Layout("table by columns", "JSON by columns, such as pandas' to_json() writes", by_columns),
)
