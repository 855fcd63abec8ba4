"""CSV tables that go with AlpacaEval: preferences without texts, difficulties, gamed baselines, published weights."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from steerboard.datasets.errors import BrokenFile, EmptyFile, FileTooLarge, UnknownColumn, WrongFileType
from steerboard.datasets.formats.lines import BOM, GZIP_ERRORS, damaged_gzip, unpacked
from steerboard.evaluation.formats.records import Unreadable, number
from steerboard_contracts.errors import BadInput
from steerboard_statistics.benchmarks.alpaca_eval import probability
from steerboard_statistics.benchmarks.length_controlled import Gamed, Weights

Row = dict[str, str | None]
Lines = list[tuple[int, Row]]

_GZIP = b"\x1f\x8b"
_MOST_BYTES = 256 << 20
_LONGEST_FIELD = 16 << 20
# A prompt's position in its benchmark. The published regressions went by the row of the annotations.
_PLACES = ("row", "index", "instruction_index")
_MOST_PROMPTS = 1_000_000
_WEIGHTS = ("np.tanh(std_delta_len)", "instruction_difficulty", "not_gamed_baseline.astype(float)")


def content(path: Path, most: int = _MOST_BYTES) -> bytes:
    """What a file holds, unpacked and without a byte order mark, `most` bytes of it at most.

    Raises `BrokenFile`, and `FileTooLarge` beyond 256 MiB.
    """
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
        file.seek(0)
        stream: BinaryIO = unpacked(file) if zipped else file
        try:
            data = stream.read(most + 1 if most == _MOST_BYTES else most)
        except GZIP_ERRORS as error:
            raise damaged_gzip(error, 0) from error
    if len(data) > _MOST_BYTES:
        raise FileTooLarge(f"{path.name} has more than {_MOST_BYTES:,} bytes", hint="Give it in several parts.")
    return data.removeprefix(BOM)


def is_table(path: Path) -> bool:
    """Whether a file is a table, and neither JSON nor empty. Raises `BrokenFile`."""
    start = content(path, 1 << 16).lstrip()[:1]
    return start not in (b"", b"{", b"[")


def table(path: Path, *columns: str) -> Lines:
    """(line, row) of a CSV file; names of columns without spaces around them and in lower case.

    Raises `EmptyFile`, `WrongFileType`, `BrokenFile`, `FileTooLarge`, and `UnknownColumn` without one of `columns`.
    """
    try:
        text = content(path).decode()
    except UnicodeDecodeError as error:
        raise WrongFileType(
            f"{path.name} is not UTF-8", code="invalid_encoding", hint="Save the file as UTF-8."
        ) from error
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        missing = [column for column in columns if column not in names]
        if missing:
            raise UnknownColumn(
                f"{path.name} has no column {missing[0]!r}; it has {', '.join(names)[:300] or 'none'}",
                hint="See docs/evaluation.md for the columns of each table.",
            )
        # Fields beyond the last column are under None.
        rows = [(reader.line_num, {name: value for name, value in row.items() if name is not None}) for row in reader]
    except csv.Error as error:
        raise BrokenFile(f"{path.name} is no CSV file: {error} on line {reader.line_num}") from error
    if not rows:
        raise EmptyFile(
            f"{path.name} has no rows", hint="A table needs a header line with column names, followed by rows."
        )
    return rows


def place_of(row: Mapping[str, Any], *more: str) -> int | None:
    """The position of a row's prompt in its benchmark, from 0; None if the row has none. Raises `Unreadable`."""
    for name in (*_PLACES, *more):
        value = number(row, name)
        if value is None:
            continue
        if not value.is_integer() or not 0 <= value < _MOST_PROMPTS:
            raise Unreadable(f"has {value:g} in `{name}`, not the place of a prompt")
        return int(value)
    return None


def read_difficulty(path: Path) -> list[float]:
    """Column `instruction_difficulty`, by the places that the rows name, else in their order; NaN where a place has
    none. Of rows about one place the first counts. Raises `BadInput`."""
    found: dict[int, float] = {}
    for order, (line, row) in enumerate(table(path, "instruction_difficulty")):
        place, (value,) = _place(path, line, row), _numbers(path, line, row, ["instruction_difficulty"])
        found.setdefault(order if place is None else place, value)
    return [found.get(place, math.nan) for place in range(max(found) + 1)]


def read_gamed(path: Path) -> Gamed:
    """{preference, std_delta_len, instruction_difficulty} of rows of gamed baselines; preferences are the judge's 1 to
    2 or p itself, rows without one are left out. Raises `BadInput`."""
    names = ["preference", "std_delta_len", "instruction_difficulty"]
    lines = [(line, row) for line, row in table(path, *names) if _numbers(path, line, row, ["preference"], whole=False)]
    columns = np.array([_numbers(path, line, row, names) for line, row in lines]).reshape(-1, 3)
    judged = len(columns) > 0 and columns[:, 0].max() > 1
    try:
        p = [probability(value) if judged else value for value in columns[:, 0].tolist()]
    except ValueError as error:
        raise BadInput(f"{path.name}: {error}", code="bad_row") from error
    if not all(value is not None and 0 <= value <= 1 for value in p):
        raise BadInput(f"{path.name} has a preference that is no probability", code="bad_row")
    return Gamed(np.tanh(columns[:, 1]), columns[:, 2], np.array(p, float))


def read_weights(path: Path) -> dict[str, Weights]:
    """Published weights by model, under the names that AlpacaEval gives its columns, else the three columns after the
    model's name. Raises `BadInput`."""
    found = {}
    for line, row in table(path):
        columns = list(row)
        name = row.get("model") or row[columns[0]]
        given = list(_WEIGHTS) if set(_WEIGHTS) <= row.keys() else columns[1:4]
        if not name or len(given) < 3:
            raise BadInput(f"{path.name}, line {line}: has no model with three weights", code="bad_row")
        found[name] = Weights(*_numbers(path, line, row, given))
    return found


def _place(path: Path, line: int, row: Row) -> int | None:
    try:
        return place_of(row, "")
    except Unreadable as error:
        raise BadInput(f"{path.name}, line {line}: {error}", code="bad_row") from error


def _numbers(path: Path, line: int, row: Row, names: Sequence[str], *, whole: bool = True) -> list[float]:
    """Raises `BadInput` for what is no number and, if `whole`, for one that is missing."""
    try:
        values = [number(row, name) for name in names]
    except Unreadable as error:
        raise BadInput(f"{path.name}, line {line}: {error}", code="bad_row") from error
    missing = [name for name, value in zip(names, values, strict=True) if value is None]
    if missing and whole:
        raise BadInput(f"{path.name}, line {line}: has no number in `{missing[0]}`", code="bad_row")
    return [value for value in values if value is not None]
