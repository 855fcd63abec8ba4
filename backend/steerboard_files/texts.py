"""Texts of others, as the database and JSON can hold them."""

from __future__ import annotations

from typing import Any, TypeVar, cast

T = TypeVar("T")


def storable(value: T) -> T:
    """The same, also in the lists and dicts below it, without what Postgres takes no text with: NUL characters become
    U+FFFD, lone surrogates question marks."""
    return cast(T, _storable(value))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_storable(key): _storable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_storable(part) for part in value]
    return value
