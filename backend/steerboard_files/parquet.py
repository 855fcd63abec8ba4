"""Parquet, decoded by a process of its own: a few hundred bytes of it can ask for gigabytes of memory."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

import orjson

from steerboard_files.errors import BrokenFile, FileTooLarge
from steerboard_files.jsonl import DEEPEST, nested_too_deeply
from steerboard_files.lines import unpacks_to_too_much
from steerboard_files.parquet_frames import FRAME, READ, Kind
from steerboard_files.records import JSON_COLUMN, Limits, Problem, Record, check_names

_PROCESS = "steerboard_files.parquet_process"
_HINT = "Write it again, for example with pyarrow or pandas."


def read_parquet(file: BinaryIO, limits: Limits) -> Iterator[Record]:
    """Records numbered by row from 1. Text columns that our own export marked as JSON are decoded.

    Raises `RepeatedColumn`, `BrokenFile` when the footer or a page cannot be read, and `FileTooLarge` when that takes
    too much memory, or gives more than `limits.unpacked`.
    """
    import pyarrow as pa  # costs 50 MB, so only an import of parquet pays for it

    number = unpacked = 0
    schema = pa.schema([])
    coded: list[str] = []
    with _decoder(file, limits) as process:
        for kind, given, content in _frames(process, file):
            if kind == Kind.SCHEMA:
                schema = pa.ipc.read_schema(pa.py_buffer(content))
                _check_names(schema, "the file")
                coded = [field.name for field in schema if JSON_COLUMN in (field.metadata or {})]
            elif kind == Kind.ROWS:
                unpacked += len(content)
                if unpacked > limits.unpacked:
                    raise unpacks_to_too_much(limits)
                for row in pa.ipc.read_record_batch(pa.py_buffer(content), schema).to_pylist():
                    number += 1
                    yield number, _decoded(row, coded)
            elif kind == Kind.LONG_ROW:
                number += 1
                reason = f"is about {given:,} bytes long; a row may have at most {limits.line:,}"
                yield number, Problem("line_too_long", reason)
            elif kind == Kind.END:
                return
            else:
                _refuse(kind, content, number)


@contextmanager
def _decoder(file: BinaryIO, limits: Limits) -> Iterator[subprocess.Popen[bytes]]:
    """The process; it ends with the block. It needs none of our settings, so it gets none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    # Arrow's own allocators reserve more than they use, and would meet the bound too soon.
    environment |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", _PROCESS, str(file.seek(0, io.SEEK_END)), str(limits.line)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _frames(process: subprocess.Popen[bytes], file: BinaryIO) -> Iterator[tuple[Kind, int, bytes]]:
    """(kind, its number, content) of each frame from the process. Its requests to read the file are answered here."""
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        head = process.stdout.read(FRAME.size)
        if len(head) < FRAME.size:
            yield Kind.GONE, 0, b""
            return
        code, given, size = FRAME.unpack(head)
        if code == Kind.READ:
            file.seek(given)
            wanted = file.read(size)
            try:
                process.stdin.write(READ.pack(len(wanted)) + wanted)
                process.stdin.flush()
            except BrokenPipeError:
                continue  # it has died, which its last frame reports
        else:
            content = process.stdout.read(size)
            yield (Kind(code), given, content) if len(content) == size else (Kind.GONE, 0, b"")


def _refuse(kind: Kind, content: bytes, number: int) -> NoReturn:
    if kind == Kind.BROKEN:
        reason = content.decode(errors="replace")
        raise BrokenFile(f"the parquet file cannot be read after row {number}: {reason}", hint=_HINT)
    if kind == Kind.MEMORY:
        raise FileTooLarge(
            f"the parquet file takes too much memory to read after row {number}{content.decode(errors='replace')}",
            hint="Write it again with smaller pages and row groups, for example with pyarrow's defaults.",
        )
    raise BrokenFile(f"the parquet file cannot be read after row {number}: its decoder crashed", hint=_HINT)


def _check_names(fields: Iterable[Any], where: str) -> None:
    """Raises `RepeatedColumn` for a schema or a struct type, at any depth."""
    inner = list(fields)
    check_names([field.name for field in inner], where)
    for field in inner:
        kind = field.type
        while hasattr(kind, "value_type"):
            kind = kind.value_type
        if isinstance(kind, Iterable):
            _check_names(kind, f"column `{field.name}`")


def _decoded(row: dict[str, Any], coded: list[str]) -> dict[str, Any] | Problem:
    for name in coded:
        if isinstance(row[name], str):
            try:
                row[name] = orjson.loads(row[name])
            except orjson.JSONDecodeError:
                try:
                    row[name] = json.loads(row[name])
                except (ValueError, RecursionError) as error:
                    return Problem("broken_json", f"column {name} is not valid JSON: {error}")
            if nested_too_deeply(row[name]):
                return Problem("broken_json", f"column {name} is nested more than {DEEPEST} levels deep")
    return row
