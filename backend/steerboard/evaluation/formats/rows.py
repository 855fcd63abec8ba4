"""Rows of an uploaded file with their lines: JSON lines, or one JSON array, plain or gzipped. Bounded throughout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from steerboard.datasets.errors import BrokenFile, EmptyFile, FileTooLarge, WrongFileType
from steerboard.datasets.formats.jsonl import nested_too_deeply, read_jsonl, takes_too_much
from steerboard.datasets.formats.lines import BOM, GZIP_ERRORS, damaged_gzip, size_of, unpacked
from steerboard.datasets.formats.records import Limits, Problem, Record, Source

MOST_ROWS = 500_000
# Of JSON lines, which are read one by one, and of an array, which has to be in memory to find its elements.
_LINES = Limits(line=16 << 20, unpacked=8 << 30)
_ARRAY_BYTES = 256 << 20
_PIECE = 1 << 20
_ELEMENT_CHARACTERS = 16 << 20
_HINT = "Give JSON lines, or one JSON array of objects; either may be gzipped."
_SPACE = " \t\r\n"


def read_rows(source: Source) -> Iterator[Record]:
    """(line, object or what is wrong with it). Can be called again for a second reading.

    Raises `EmptyFile`, `WrongFileType`, `BrokenFile`, `FileTooLarge`, `ImportOutOfMemory`.
    """
    file = source.open()
    file.seek(0)
    zipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    limits = _LINES.of(size_of(file)) if zipped else _LINES
    stream: BinaryIO = unpacked(file) if zipped else file
    first = _first(stream, source.label)
    file.seek(0)
    stream = unpacked(file) if zipped else file
    count = 0
    for record in _array(stream, source.label) if first == b"[" else read_jsonl(stream, limits):
        count += 1
        if count > MOST_ROWS:
            raise FileTooLarge(f"{source.label} has more than {MOST_ROWS:,} rows", hint="Import it in several parts.")
        yield record
    if not count:
        raise EmptyFile(f"{source.label} has no rows", hint=_HINT)


def _first(stream: BinaryIO, label: str) -> bytes:
    """The first byte that is no space."""
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


def _array(stream: BinaryIO, label: str) -> Iterator[Record]:
    """Elements of an array, one parsed at a time, with the line on which each begins."""
    data = bytearray()
    try:
        # In pieces, for a read of that size takes as much memory at once.
        while len(data) <= _ARRAY_BYTES and (piece := stream.read(_PIECE)):
            data += piece
    except GZIP_ERRORS as error:
        raise damaged_gzip(error, 0) from error
    if len(data) > _ARRAY_BYTES:
        raise FileTooLarge(
            f"{label} is a JSON array of more than {_ARRAY_BYTES:,} bytes",
            hint="Write one object per line: jq -c '.[]'",
        )
    try:
        whole = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WrongFileType(f"{label} is not UTF-8", code="invalid_encoding", hint="Save the file as UTF-8.") from error
    del data
    decoder, at, line, counted = json.JSONDecoder(), whole.index("[") + 1, 1, 0
    at = _skip(whole, at, _SPACE)
    if whole[at : at + 1] == "]":
        return
    while True:
        line += whole.count("\n", counted, at)
        counted = at
        try:
            value, end = decoder.raw_decode(whole, at)
        except MemoryError:
            raise takes_too_much(line) from None
        except (json.JSONDecodeError, RecursionError) as error:
            place = error.pos if isinstance(error, json.JSONDecodeError) else at
            line += whole.count("\n", counted, place)
            raise BrokenFile(
                f"{label} is not valid JSON on line {line}: {getattr(error, 'msg', 'nested too deeply')}",
                code="broken_json",
                hint="The copy was probably interrupted; fetch the file again.",
            ) from error
        yield line, _element(value, end - at)
        at = _skip(whole, end, _SPACE)
        if whole[at : at + 1] == "]":
            return
        if whole[at : at + 1] != ",":
            raise BrokenFile(
                f"{label} is not valid JSON on line {line + whole.count(chr(10), counted, at)}: no comma or end",
                code="broken_json",
                hint="The copy was probably interrupted; fetch the file again.",
            )
        at = _skip(whole, at + 1, _SPACE)


def _element(value: Any, length: int) -> dict[str, Any] | Problem:
    if not isinstance(value, dict):
        return Problem("bad_row", "is not an object")
    if length > _ELEMENT_CHARACTERS:
        return Problem("line_too_long", f"has {length:,} characters; at most {_ELEMENT_CHARACTERS:,} are read")
    if nested_too_deeply(value):
        return Problem("broken_json", "is nested too deeply")
    return value


def _skip(whole: str, at: int, characters: str) -> int:
    while at < len(whole) and whole[at] in characters:
        at += 1
    return at
