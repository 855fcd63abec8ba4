"""Rows to and from pandas, polars, Arrow and `datasets`. None of them is imported before it is used."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from steerboard_client.errors import BadInput

Row = dict[str, Any]


def _package(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadInput(
            f"{name} is not installed.", code="missing_package", hint=f"pip install 'steerboard-client[{extra}]'"
        ) from error


def rows_of(data: Any) -> Iterator[Row]:
    """The rows of a frame, a table, a `datasets.Dataset` or an iterable of dicts. Raises `BadInput` (`not_rows`)."""
    if hasattr(data, "to_pylist"):  # pyarrow.Table
        for batch in data.to_batches():
            yield from batch.to_pylist()
    elif hasattr(data, "iter_rows"):  # polars.DataFrame
        yield from data.iter_rows(named=True)
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas.DataFrame
        for row in data.to_dict(orient="records"):
            yield {name: _without_nan(value) for name, value in row.items()}
    elif isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise BadInput(f"{type(data).__name__} has no rows.", code="not_rows", hint="Give a frame, dicts or a path.")
    else:
        for number, row in enumerate(data, 1):
            if not isinstance(row, Mapping):
                raise BadInput(f"row {number} is of type {type(row).__name__}, not a dict", code="not_rows")
            yield dict(row)


def write_rows(data: Any, file: Any) -> int:
    """Writes JSON lines into a binary file; returns their number. Raises `BadInput` (`not_rows`, `not_json`)."""
    number = 0
    for number, row in enumerate(rows_of(data), 1):
        try:
            line = json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain)
        except (TypeError, ValueError) as error:
            raise BadInput(f"row {number} cannot be written as JSON: {error}", code="not_json") from None
        file.write(line.encode() + b"\n")
    if number == 0:
        raise BadInput("there are no rows", code="not_rows")
    return number


def read_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def to_pandas(rows: Iterable[Row]) -> Any:
    return _package("pandas", "pandas").DataFrame(list(rows))


def to_polars(rows: Iterable[Row]) -> Any:
    return _package("polars", "polars").DataFrame(list(rows), infer_schema_length=None)


def to_arrow(path: Path) -> Any:
    """The table of a Parquet file."""
    _package("pyarrow", "datasets")
    return _package("pyarrow.parquet", "datasets").read_table(path)


def to_datasets(table: Any) -> Any:
    return _package("datasets", "datasets").Dataset(table)


def _without_nan(value: Any) -> Any:
    """pandas writes what is missing as NaN."""
    return None if isinstance(value, float) and value != value else value


def _plain(value: Any) -> Any:
    """Scalars and arrays of numpy, and times."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
