"""JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from steerboard_contracts.errors import ErrorLocation
from steerboard_files.errors import ImportOutOfMemory
from steerboard_files.lines import bounded_lines, decoded
from steerboard_files.records import Limits, Problem, Record

# The encoder of samples and of other columns goes no deeper than 254, which leaves some for what is put around them.
DEEPEST = 200


# orjson crashes where it gets no memory for a value; Python's own parser raises `MemoryError`.
_MOST_VALUES = 500_000

_END_OF_NAME = re.compile(rb'"[ \t\r\n]*:')


class _TooManyValues(Exception):
    """A line for Python's own parser."""


def read_jsonl(stream: BinaryIO, limits: Limits) -> Iterator[Record]:
    """One record a line; blank lines are skipped. Broken lines come out as problems and do not end the stream.

    Raises `ImportOutOfMemory` where the process's limit does not suffice for a line, and like `bounded_lines`."""
    for number, line in bounded_lines(stream, limits):
        if isinstance(line, Problem):
            yield number, line
        elif not line.isspace() and line:
            try:
                record = parse_object(line)
            except MemoryError:
                raise takes_too_much(number) from None
            yield number, record


def parse_object(line: bytes) -> dict[str, Any] | Problem:
    """One JSON object. NaN and Infinity, which Python writes, are read so that the field at fault can be named."""
    try:
        if sum(map(line.count, (b",", b"[", b"{"))) > _MOST_VALUES:
            raise _TooManyValues
        value = orjson.loads(line)
    except (orjson.JSONDecodeError, _TooManyValues):
        text = decoded(line)
        if isinstance(text, Problem):
            return text
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            place = "character" if "\n" in text.strip() else "column"
            return Problem("broken_json", f"is not valid JSON: {error.msg} at {place} {error.pos + 1}")
        except (RecursionError, ValueError) as error:
            return Problem("broken_json", f"is not valid JSON: {error}")
    if line.count(b"[") + line.count(b"{") > DEEPEST and nested_too_deeply(value):
        return Problem("broken_json", f"is nested more than {DEEPEST} levels deep")
    if not isinstance(value, dict):
        return Problem("bad_row", f"is a JSON {_json_type(value)}, not an object")
    if (twice := repeated_name(line, value)) is not None:
        return Problem("bad_row", f"has `{twice[:100]}` twice, and it is unknown which one counts")
    return value


def repeated_name(text: bytes, value: dict[str, Any]) -> str | None:
    """A name that an object has twice, at any depth, of which parsers silently take the last. `value`: what they
    make of `text`."""
    # A name ends in a quote and a colon, as little else does: few lines have more of these than names, and only those
    # are read again.
    if len(_END_OF_NAME.findall(text)) == _names(value):
        return None
    try:
        json.loads(text, object_pairs_hook=_once)
    except _Repeated as error:
        return str(error)
    except (RecursionError, ValueError):
        return None
    return None


def _names(value: object) -> int:
    """How many an object and those inside it have. Without recursion, as in `nested_too_deeply`."""
    count = 0
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            count += len(part)
            part = list(part.values())
        if isinstance(part, list):
            left += [inner for inner in part if isinstance(inner, (dict, list))]
    return count


class _Repeated(Exception):
    """The message is the name."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    merged = dict(pairs)
    if len(merged) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Repeated(next(name for name in names if names.count(name) > 1))
    return merged


def takes_too_much(line: int) -> ImportOutOfMemory:
    """Sixteen megabytes of empty lists become a gigabyte of them."""
    return ImportOutOfMemory(
        f"line {line} takes more memory than an import may use",
        hint="Leave it out, or raise STEERBOARD_IMPORT_MEMORY_MB.",
        errors=[ErrorLocation(location=f"line {line}", message="takes more memory than an import may use")],
    )


def nested_too_deeply(value: object) -> bool:
    """Whether a value has more levels than can be written again. Without recursion, which has its own limit."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            part
            for parent in level
            if isinstance(parent, dict | list)
            for part in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True


def _json_type(value: object) -> str:
    names = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")
