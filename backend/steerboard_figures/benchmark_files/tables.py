"""CSV tables that go with AlpacaEval: preferences without texts, difficulties, gamed baselines, published weights."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.length_control import KEYS, Published
from steerboard_figures.formats.records import Unreadable, identifier, number
from steerboard_figures.formats.rows import read_rows
from steerboard_files.errors import BrokenFile, EmptyFile, FileTooLarge, UnknownColumn, WrongFileType
from steerboard_files.lines import BOM, GZIP, GZIP_ERRORS, damaged_gzip, unpacked
from steerboard_files.records import Source
from steerboard_statistics.benchmarks.alpaca_eval import probability
from steerboard_statistics.benchmarks.length_controlled import Gamed, Weights

Row = dict[str, str | None]
Lines = list[tuple[int, Row]]

_SPACE = re.compile(r"\s")
_MOST_BYTES = 256 << 20
_LONGEST_FIELD = 16 << 20
# A prompt's position in its benchmark. The published regressions went by the row of the annotations.
_PLACES = ("row", "index", "instruction_index")
_MOST_PROMPTS = 1_000_000
# Columns that may have several lines. In any other, a line break means that a quote was not closed.
_TEXTS = (
    *("instruction", "input", "output", "output_1", "output_2", "raw_completion", "conversation_a", "conversation_b"),
    *("prompt", "chosen", "rejected", "text", "text_chosen", "text_rejected", "question", "judgment", "comment"),
)
_WEIGHTS = ("np.tanh(std_delta_len)", "instruction_difficulty", "not_gamed_baseline.astype(float)")


def content(path: Path, most: int = _MOST_BYTES) -> bytes:
    """What a file holds, unpacked and without a byte order mark, `most` bytes of it at most.

    Raises `BrokenFile`, and `FileTooLarge` beyond 256 MiB.
    """
    with path.open("rb") as file:
        zipped = file.read(2) == GZIP
        file.seek(0)
        stream: BinaryIO = unpacked(file) if zipped else file
        try:
            data = stream.read(most + 1 if most == _MOST_BYTES else most)
        except GZIP_ERRORS as error:
            raise damaged_gzip(error, 0) from error
    if len(data) > _MOST_BYTES:
        raise FileTooLarge(f"{path.name} has more than {_MOST_BYTES:,} bytes", hint="Split it into several files.")
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
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows: Lines = []
    begins: list[int] = []
    begun = 1
    try:
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        missing = [column for column in columns if column not in names]
        if missing:
            raise UnknownColumn(
                f"{path.name} has no column {missing[0]!r}; it has {', '.join(names)[:300] or 'none'}",
                hint="See docs/evaluation.md for the columns of each table.",
            )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise csv.Error(f"it has two columns {twice!r}")
        begun = reader.line_num + 1
        for row in reader:
            if None in row or None in row.values():
                raise csv.Error(f"not as many fields as the {len(names)} columns")
            if any("\n" in (value or "") for name, value in row.items() if name not in _TEXTS):
                raise csv.Error("a number or a name goes over several lines")
            rows.append((reader.line_num, dict(row)))
            begins.append(begun)
            begun = reader.line_num + 1
        for start, (_, row) in zip(begins, rows, strict=True):
            if _swallowed(names, row, rows):
                begun = start
                raise csv.Error("a text goes over lines that are rows of their own")
    except csv.Error as error:
        raise BrokenFile(
            f"{path.name} is not a CSV file: {error}, in the row that begins on line {begun}",
            hint="Probably a quote in that row is not closed, or a comma inside a field is not quoted.",
        ) from error
    if not rows:
        raise EmptyFile(
            f"{path.name} has no rows", hint="A table needs a header line with column names, followed by rows."
        )
    return rows


def _swallowed(names: Sequence[str], row: Row, rows: Lines) -> bool:
    """Whether one of the row's texts begins with the rest of one row and ends with the beginning of another.

    So it does where the quote before it is not closed: it then extends to the next quote of the file.
    """
    for place, name in enumerate(names):
        lines = (row[name] or "").splitlines() if name in _TEXTS else []
        if len(lines) < 2:
            continue
        try:
            ((_, *after),) = csv.reader([lines[0]])
            ((*before, _),) = csv.reader([lines[-1]])
        except ValueError:
            continue
        if (len(before), len(after)) != (place, len(names) - place - 1):
            continue
        others = [*zip(names[:place], before, strict=True), *zip(names[place + 1 :], after, strict=True)]
        numeric = [(column, value) for column, value in others if column not in _TEXTS]
        if len(numeric) > 1 and all(_alike(column, value, row, rows) for column, value in numeric):
            return True
    return False


def _alike(column: str, value: str, row: Row, rows: Lines) -> bool:
    """Whether a column has such values: numbers, names that another row has, or ids that are words everywhere."""
    try:
        if number({column: row[column]}, column) is not None:
            return number({column: value}, column) is not None
    except Unreadable:
        pass
    values = [other[column] or "" for _, other in rows]
    if value in values:
        return True
    ids = len(set(values)) == len(values) and not any(map(_SPACE.search, values))
    return ids and 0 < len(value) <= max(map(len, values)) and _SPACE.search(value) is None


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
    none. Raises `BadInput`, also for two difficulties of one place."""
    difficulty: dict[int, float] = {}
    for order, (line, row) in enumerate(table(path, "instruction_difficulty")):
        place, (value,) = _place(path, line, row), _numbers(path, line, row, ["instruction_difficulty"])
        at = order if place is None else place
        if difficulty.setdefault(at, value) != value:
            raise BadInput(f"{path.name}, line {line}: has another difficulty of place {at}", code="bad_row")
    return [difficulty.get(place, math.nan) for place in range(max(difficulty) + 1)]


def read_gamed(path: Path) -> Gamed:
    """{preference, std_delta_len, instruction_difficulty} of rows of gamed baselines; preferences are the judge's 1 to
    2 or p itself, rows without one are left out. Raises `BadInput`."""
    names = ["preference", "std_delta_len", "instruction_difficulty"]
    lines = [(line, row) for line, row in table(path, *names) if _numbers(path, line, row, ["preference"], whole=False)]
    if not lines:
        raise EmptyFile(f"{path.name} has no row with a preference", hint="Gamed baselines need their `preference`.")
    columns = np.array([_numbers(path, line, row, names) for line, row in lines]).reshape(-1, 3)
    judged = columns[:, 0].max() > 1
    try:
        p = [probability(value) if judged else value for value in columns[:, 0].tolist()]
    except ValueError as error:
        raise BadInput(f"{path.name}: {error}", code="bad_row") from error
    if not all(value is not None and 0 <= value <= 1 for value in p):
        raise BadInput(f"{path.name} has a preference that is not a probability", code="bad_row")
    return Gamed(np.tanh(columns[:, 1]), columns[:, 2], np.array(p, float))


def read_prompts(path: Path) -> list[str]:
    """Texts of the benchmark's prompts in its order: column or field `instruction`. Raises `BadInput`."""
    if is_table(path):
        rows: Iterable[tuple[int, Any]] = table(path, "instruction")
    else:
        rows = read_rows(Source(path.name, lambda: path.open("rb")))
    prompts = []
    for line, row in rows:
        text = row.get("instruction") if isinstance(row, Mapping) else None
        if not isinstance(text, str):
            raise BadInput(f"{path.name}, line {line}: has no text in `instruction`", code="bad_row")
        prompts.append(text)
    return prompts


def read_categories(path: Path) -> dict[Hashable, str]:
    """{question id: category} of a file of questions. Raises `BadInput` where none has a category."""
    categories: dict[Hashable, str] = {}
    for _, row in read_rows(Source(path.name, lambda: path.open("rb"))):
        try:
            key = identifier(row, "question_id") if isinstance(row, Mapping) else None
            category = row.get("category") if isinstance(row, Mapping) else None
        except Unreadable:
            continue
        if key is not None and isinstance(category, str):
            categories[key] = category
    if not categories:
        raise BadInput(
            f"{path.name} has no question with a category",
            code="missing_input",
            hint="Its rows need `question_id` and `category`.",
        )
    return categories


def read_weights(path: Path) -> dict[str, Published]:
    """Published weights by model, under the names that AlpacaEval gives its columns, else the three columns after the
    model's name; `variant` in what `write_weights` wrote. Raises `BadInput`."""
    weights: dict[str, Published] = {}
    for line, row in table(path):
        columns = list(row)
        name = row.get("model") or row[columns[0]]
        variant = row.get("variant") or "full"
        if variant not in KEYS:
            raise BadInput(f"{path.name}, line {line}: has {variant!r} in `variant`", code="bad_row")
        missing = [published for published in _WEIGHTS if published not in row]
        if 0 < len(missing) < len(_WEIGHTS):
            raise UnknownColumn(
                f"{path.name} has no column {missing[0]!r}, but others of AlpacaEval's: {', '.join(columns)[:300]}",
                hint="Name all three as AlpacaEval does, or none: they are then taken in its order.",
            )
        given = columns[1:4] if missing else list(_WEIGHTS)
        if not name or len(given) < 3:
            raise BadInput(f"{path.name}, line {line}: has no model with three weights", code="bad_row")
        published = Published(Weights(*_numbers(path, line, row, given)), variant)
        if weights.setdefault(name, published) != published:
            raise BadInput(f"{path.name}, line {line}: has other weights of {name}", code="bad_row")
    return weights


def write_weights(path: Path, weights: Mapping[str, Published]) -> None:
    """Write weights as AlpacaEval does, with the variant that they are of; the file appears whole."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["", *_WEIGHTS, "variant"])
    for name, published in weights.items():
        writer.writerow(
            [name, published.weights.length, published.weights.difficulty, published.weights.model, published.variant]
        )
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text.getvalue())
    partial.replace(path)


def _place(path: Path, line: int, row: Row) -> int | None:
    try:
        return place_of(row, "")
    except Unreadable as error:
        raise BadInput(f"{path.name}, line {line}: {error}", code="bad_row") from error


def _numbers(path: Path, line: int, row: Row, names: Sequence[str], *, whole: bool = True) -> list[float]:
    """Raises `BadInput` for what is not a number and, if `whole`, for one that is missing."""
    try:
        values = [number(row, name) for name in names]
    except Unreadable as error:
        raise BadInput(f"{path.name}, line {line}: {error}", code="bad_row") from error
    missing = [name for name, value in zip(names, values, strict=True) if value is None]
    if missing and whole:
        raise BadInput(f"{path.name}, line {line}: has no number in `{missing[0]}`", code="bad_row")
    return [value for value in values if value is not None]
