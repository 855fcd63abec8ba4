"""Parquet, one small batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from steerboard.datasets.errors import BrokenFile
from steerboard.datasets.files.records import JSON_COLUMN, Limits, Problem, Record

BATCH_ROWS = 1024


def read_parquet(file: BinaryIO, limits: Limits) -> Iterator[Record]:
    """Records numbered by row from 1. Text columns that our own export marked as JSON are decoded.

    Raises `BrokenFile` when the footer or a page cannot be read.
    """
    import pyarrow as pa  # costs 50 MB, so only an import of parquet pays for it
    import pyarrow.parquet as pq

    number = 0
    try:
        # Without pre-buffering a row group is read page by page, so its size does not matter.
        parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
        coded = [f.name for f in parquet.schema_arrow if JSON_COLUMN in (f.metadata or {})]
        for batch in parquet.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
            for row in batch.to_pylist():
                number += 1
                yield number, _checked(row, coded, limits)
    except (pa.ArrowException, OSError) as error:
        raise BrokenFile(
            f"the parquet file cannot be read after row {number}: {error}",
            hint="Write it again, for example with pyarrow or pandas.",
        ) from error


def _checked(row: dict[str, Any], coded: list[str], limits: Limits) -> dict[str, Any] | Problem:
    if sum(len(value) for value in row.values() if isinstance(value, str | bytes)) > limits.line:
        return Problem("line_too_long", f"is more than {limits.line:,} bytes long")
    for name in coded:
        if isinstance(row[name], str):
            try:
                row[name] = orjson.loads(row[name])
            except orjson.JSONDecodeError:
                try:
                    row[name] = json.loads(row[name])
                except ValueError as error:
                    return Problem("broken_json", f"column {name} is not valid JSON: {error}")
    return row
