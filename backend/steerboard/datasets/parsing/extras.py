"""The columns of a file that belong to no field: kept as JSON, and given back by export."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any, ClassVar

import orjson

from steerboard_files.records import Problem

_STORABLE = (str, int, float, decimal.Decimal, dt.date, dt.time, uuid.UUID)


def storable_columns(extra: dict[str, Any] | None) -> dict[str, Any] | None:
    """Other columns without those of types that JSON does not know, such as the bytes of a picture."""
    kept = {name: value for name, value in (extra or {}).items() if _is_storable(value)}
    return kept or None


def encode_extra(extra: dict[str, Any] | None) -> str | Problem | None:
    """Other columns as JSON for JSONB, which takes no NUL; NaN becomes null."""
    if not extra:
        return None
    try:
        encoded = orjson.dumps(extra, default=_encode_other)
    except (TypeError, orjson.JSONEncodeError) as error:
        return Problem("bad_row", f"a column that is kept as it is cannot be stored: {error}")
    if b"\\u0000" in encoded and _has_nul(extra):
        return Problem("bad_row", "a column that is kept as it is contains a NUL character")
    return encoded.decode()


def _is_storable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(map(_is_storable, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_storable, value))
    return value is None or isinstance(value, _STORABLE)


def _encode_other(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} values are not supported")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(_has_nul(part) for part in value)


class ColumnTypes:
    """The JSON type of each extra column, so that parquet exports have typed columns: int, float, bool, text, json."""

    _NAMES: ClassVar[dict[type, str]] = {bool: "bool", int: "int", float: "float", str: "text"}

    def __init__(self) -> None:
        self._types: dict[str, str] = {}

    def add(self, extra: dict[str, Any] | None) -> None:
        for name, value in (extra or {}).items():
            if value is None:
                self._types.setdefault(name, "null")
                continue
            now = self._NAMES.get(type(value), "json")
            if now == "int" and not -(2**63) <= value < 2**63:
                now = "json"
            before = self._types.get(name, "null")
            if before in ("null", now):
                self._types[name] = now
            else:
                self._types[name] = "json"  # also int mixed with float: JSON keeps 1 and 1.0 apart, as the file did

    def summary(self) -> list[tuple[str, str]]:
        """(name, type) in the file's order, which JSONB would forget of an object."""
        return [(name, "json" if kind == "null" else kind) for name, kind in self._types.items()]
