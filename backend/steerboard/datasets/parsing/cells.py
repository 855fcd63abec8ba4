"""Messages that a file has as text: JSON within JSON or a CSV cell, or as Python prints a list, which is what pandas
writes into a CSV."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import orjson

from steerboard.datasets.parsing.mapping import ALIASES
from steerboard.datasets.parsing.unused_columns import looks_like_answers
from steerboard_files.columns import is_message
from steerboard_files.records import Problem, Record

_NAMES = frozenset(
    name for field in ("prompt", "messages", "response", "chosen", "rejected") for name in ALIASES[field]
) | {"context"}
_BEGINS = re.compile(r"\s*(\[\s*)?\{\s*(['\"])(role|content|from|value)\2\s*:")
# Python's parser takes some hundred times as much memory as the text.
_LONGEST = 1 << 20


def with_messages(
    records: Iterable[tuple[str | None, Record]], named: Collection[str]
) -> Iterator[tuple[str | None, Record]]:
    """Records whose conversations and answers are messages where they were texts of messages. Other columns stay texts,
    unless they are `named`."""
    for label, (number, record) in records:
        yield label, (number, _read(record, named) if isinstance(record, dict) else record)


def _read(record: dict[str, Any], named: Collection[str]) -> dict[str, Any] | Problem:
    parsed: dict[str, Any] = {}
    for name, value in record.items():
        if not isinstance(value, str) or not _BEGINS.match(value):
            continue
        if name.lower() not in _NAMES and name not in named and not looks_like_answers(name):
            continue
        messages = _messages(value)
        if messages is None and "'" in value[:20]:
            return Problem(
                "bad_row",
                f"{name}: has messages as Python or NumPy prints them, which cannot be read back; write the file with "
                "to_json(orient='records', lines=True) or to_parquet",
            )
        if messages is not None:
            parsed[name] = messages
    return {**record, **parsed} if parsed else record


def _messages(text: str) -> Any:
    """A message or a list of them; None for anything else."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        if len(text) > _LONGEST:
            return None
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    several = value if isinstance(value, list) else [value]
    return value if several and all(map(is_message, several)) else None
