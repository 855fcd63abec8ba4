"""Rows of an uploaded file with their lines: JSON lines, one JSON array, or one object of columns, plain or gzipped.
Bounded throughout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from steerboard_files.columns import rows_of_columns
from steerboard_files.errors import EmptyFile, FileTooLarge, WrongFileType
from steerboard_files.json_array import read_json_array
from steerboard_files.jsonl import read_jsonl
from steerboard_files.lines import BOM, GZIP, GZIP_ERRORS, damaged_gzip, size_of, unpacked
from steerboard_files.records import Limits, Record, Source

MOST_ROWS = 500_000
_LIMITS = Limits(line=16 << 20, unpacked=8 << 30)
_HINT = "Give JSON lines, or one JSON array of objects; either may be gzipped."


def read_rows(source: Source) -> Iterator[Record]:
    """(line, object or what is wrong with it). Can be called again for a second reading.

    Raises `EmptyFile`, `WrongFileType`, `BrokenFile`, `FileTooLarge`, `ImportOutOfMemory`.
    """
    file = source.open()
    file.seek(0)
    zipped = file.read(2) == GZIP
    file.seek(0)
    limits = _LIMITS.of(size_of(file)) if zipped else _LIMITS
    stream: BinaryIO = unpacked(file) if zipped else file
    first = _first(stream, source.label)
    file.seek(0)
    stream = unpacked(file) if zipped else file
    count = 0
    for record in rows_of_columns((read_json_array if first == b"[" else read_jsonl)(stream, limits)):
        count += 1
        if count > MOST_ROWS:
            raise FileTooLarge(f"{source.label} has more than {MOST_ROWS:,} rows", hint="Import it in several parts.")
        yield record
    if not count:
        raise EmptyFile(f"{source.label} has no rows", hint=_HINT)


def _first(stream: BinaryIO, label: str) -> bytes:
    """The first byte that is not a space."""
    try:
        head = stream.read(1 << 16).removeprefix(BOM).lstrip()
    except GZIP_ERRORS as error:
        raise damaged_gzip(error, 0) from error
    if not head:
        raise EmptyFile(f"{label} is empty", hint=_HINT)
    if head[:1] not in (b"{", b"["):
        raise WrongFileType(f"{label} holds no JSON", hint=_HINT)
    if head.split(b"\n", 1)[0].strip() == b"{":
        raise WrongFileType(f"{label} is one JSON object over several lines", hint=_HINT)
    return head[:1]
