"""Keyset pagination: stable while rows are added, and as quick on the last page as on the first.

A page is bounded by bytes too: it ends early, with a cursor, once its rows have taken `PAGE_BYTES`.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import orjson
from pydantic import BaseModel
from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from steerboard.platform.http.errors import InvalidRequest
from steerboard.platform.row_sizes import ROWS_AT_ONCE, take

Row = TypeVar("Row")
Out = TypeVar("Out")


class Page(BaseModel, Generic[Out]):
    """`next` is the cursor of the page after this one, null on the last."""

    items: list[Out]
    next: str | None = None


def paginate(
    session: Session,
    statement: Select[Row],
    column: InstrumentedAttribute[uuid.UUID] | InstrumentedAttribute[int],
    convert: Callable[[Row], Out],
    *,
    cursor: str | None = None,
    limit: int = 50,
    newest_first: bool = True,
    convert_all: Callable[[Sequence[Row]], list[Out]] | None = None,
    searched: bool = False,
) -> Page[Out]:
    """A page of `statement` (one entity, without ORDER BY) in the order of its unique `column`.

    `convert_all` turns a whole page at once where that saves queries. `searched`: `statement` has conditions that most
    rows may fail; then indexes find the page before any row is read. Raises `InvalidRequest` (`bad_cursor`).
    """
    if cursor is not None:
        last = decode_cursor(cursor, column)
        statement = statement.where(column < last if newest_first else column > last)
    order = column.desc() if newest_first else column
    statement = statement.order_by(order).limit(limit + 1)
    if searched:
        page_of = statement.with_only_columns(column).subquery()
        statement = select(column.class_).where(column.in_(select(page_of))).order_by(order)
    page, more = take(session.scalars(statement.execution_options(yield_per=ROWS_AT_ONCE)), limit)
    following = encode_cursor(getattr(page[-1], column.key)) if more else None
    items = convert_all(page) if convert_all else [convert(row) for row in page]
    return Page(items=items, next=following)


def named(statement: Select[Row], table: Any, part: str | None) -> Select[Row]:
    """The rows of `statement` with a `part` in the names of `table`, in whichever case; all of them without one."""
    return statement.where(name_has(table, part)) if part else statement


def name_has(table: Any, part: str) -> ColumnElement[bool]:
    """Whether the name has the part, in whichever case; by `name_lower` where a table has it, many times as fast."""
    if not hasattr(table, "name_lower"):
        return cast(ColumnElement[bool], table.name.icontains(part, autoescape=True))
    escaped = re.sub(r"([\\%_])", r"\\\1", part)
    return cast(ColumnElement[bool], table.name_lower.like(func.lower(f"%{escaped}%")))


def encode_cursor(value: uuid.UUID | int) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


def decode_cursor(cursor: str, column: InstrumentedAttribute[Any]) -> Any:
    try:
        value = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if column.type.python_type is uuid.UUID:
            return uuid.UUID(value)
        if not isinstance(value, int):
            raise ValueError("not a number")
    except (ValueError, TypeError, AttributeError, binascii.Error):
        raise InvalidRequest(
            "the cursor is not one of this list", code="bad_cursor", hint="Use `next` of the previous page unchanged."
        ) from None
    return value
