"""CSV, and its tab and semicolon kin. Every value is text; what it means is for the mapping to say."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import BinaryIO

from steerboard_files.lines import bounded_lines, decoded
from steerboard_files.records import Limits, Problem, Record, check_names

DELIMITERS = ",\t;"
# What Excel reads the delimiter from, before the header.
_SEPARATOR = re.compile(r"sep=(.)", re.IGNORECASE)


def split_header(line: str, delimiters: str = DELIMITERS) -> tuple[str, list[str]]:
    """(delimiter, column names): the delimiter that gives the header the most columns."""
    best = (delimiters[0], [line.strip()])
    for delimiter in delimiters:
        try:
            names = next(csv.reader([line], delimiter=delimiter, strict=True))
        except (csv.Error, StopIteration):
            continue
        if len(names) > len(best[1]):
            best = (delimiter, names)
        elif len(names) == 1 and len(best[1]) == 1:
            best = (best[0], names)
    return best[0], [name.strip() for name in best[1]]


class _Lines:
    """Text lines for `csv.reader`; remembers a line that could not be given to it."""

    def __init__(self, stream: BinaryIO, limits: Limits) -> None:
        self._lines = bounded_lines(stream, limits)
        self.number = 0
        self.problem: Problem | None = None

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            self.number = number
            text = line if isinstance(line, Problem) else decoded(line)
            if isinstance(text, Problem):
                self.problem = text
                yield "\n"
            else:
                yield text


def read_csv(stream: BinaryIO, limits: Limits) -> Iterator[Record]:
    """Records numbered by the line they start on. The first line names the columns; one without a name is called by its
    place. Raises `RepeatedColumn`."""
    source = _Lines(stream, limits)
    lines = iter(source)
    header = next(lines, "")
    if source.problem:
        yield 1, source.problem
        return
    if (given := _SEPARATOR.fullmatch(header.strip())) is not None:
        delimiter, names = given[1], split_header(next(lines, ""), given[1])[1]
    else:
        delimiter, names = split_header(header)
    names = [name or f"column {place}" for place, name in enumerate(names, 1)]
    check_names(names, "the header")
    csv.field_size_limit(limits.line)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = source.number + 1
        try:
            values = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, _csv_problem(error, limits)
            continue
        if source.problem:
            yield source.number, source.problem
            source.problem = None
        elif len(values) == len(names):
            yield start, dict(zip(names, values, strict=True))
        elif values:
            reason = f"has {len(values)} values where the header names {len(names)} columns"
            yield start, Problem("broken_csv", reason)


def _csv_problem(error: csv.Error, limits: Limits) -> Problem:
    if "field larger" in str(error):
        return Problem(
            "line_too_long", f"holds a value of more than {limits.line:,} bytes; is a quotation mark not closed?"
        )
    return Problem("broken_csv", f"is not valid CSV: {error}")
