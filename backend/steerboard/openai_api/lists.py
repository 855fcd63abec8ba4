"""Lists as OpenAI's API answers them: a page of `limit` things behind the one whose id is `after`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from steerboard.openai_api.ids import meant
from steerboard.platform.http.errors import InvalidRequest
from steerboard_contracts.errors import ErrorLocation

Row = TypeVar("Row")


def unknown_after(after: str) -> InvalidRequest:
    place = ErrorLocation(location="after", message="is not the id of anything in this list")
    return InvalidRequest(
        f"`after` is {after[:100]!r}, which is not in this list",
        code="bad_cursor",
        hint="Use the id of the last thing of the previous page.",
        errors=[place],
    )


def page_of(
    session: Session,
    query: Select[Row],
    column: InstrumentedAttribute[uuid.UUID],
    prefix: str,
    convert: Callable[[Sequence[Row]], list[dict[str, Any]]],
    *,
    after: str | None,
    limit: int,
    newest_first: bool = True,
) -> dict[str, Any]:
    """Raises `InvalidRequest` (`bad_cursor`)."""
    if after is not None:
        last = meant(prefix, after)
        if last is None:
            raise unknown_after(after)
        query = query.where(column < last if newest_first else column > last)
    rows = session.scalars(query.order_by(column.desc() if newest_first else column).limit(limit + 1)).all()
    return listed(convert(rows[:limit]), more=len(rows) > limit)


def listed(data: list[dict[str, Any]], *, more: bool) -> dict[str, Any]:
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
    return {"object": "list", "data": data, "has_more": more, **ends}
