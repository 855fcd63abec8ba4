"""Rewards in files: a stage's output, or grades that a user brings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steerboard.datasets.parsing.mapping import listed
from steerboard_contracts.errors import BadRow, ErrorLocation
from steerboard_files.detect import open_reader
from steerboard_files.errors import UnknownColumn
from steerboard_files.records import Problem, Source

GradedRow = tuple[int, Any, Any]
"""(line, row, value), neither checked yet."""


def read_rewards(source: Source) -> Iterator[GradedRow]:
    """Rows of a file with the columns `row` and `value` (or `reward`). Raises `UnknownColumn` and `BadRow`."""
    reader = open_reader(source)
    for number, record in reader.records:
        if isinstance(record, Problem):
            raise BadRow(
                f"{reader.unit} {number} {record.reason}",
                code=record.code,
                errors=[ErrorLocation(location=f"{reader.unit} {number}", message=record.reason)],
            )
        column = "value" if "value" in record else "reward"
        if "row" not in record or column not in record:
            raise UnknownColumn(
                f"{reader.unit} {number} has the columns {listed(list(record))}; row and value are needed",
                hint="Name the row (from 0) in `row` and its reward in `value`.",
            )
        row, value = record["row"], record[column]
        if reader.format.startswith("csv"):
            row, value = _number(row, int), _number(value, float)
        yield number, row, value


def _number(cell: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(cell)
    except ValueError:
        return cell
