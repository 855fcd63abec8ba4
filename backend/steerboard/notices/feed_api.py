"""The notices of a project over HTTP, as the dashboard's bell shows them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.notices import feed
from steerboard.notices.messages import message_of
from steerboard.notices.schemas import NoticeOut, NoticesRead, UnreadNotices
from steerboard.notices.tables import Notice
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/notices", tags=["notices"])

Reader = Annotated[Access, Depends(AccessTo("read"))]


@router.get("", responses=problems(404))
def list_notices(
    session: Db,
    access: Reader,
    mentions: Annotated[bool, Query(description="Only comments that name the caller.")] = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Page[NoticeOut]:
    """The newest first. They are kept for a month. Runs of a pipeline are here only if they failed, paused or broke a
    health rule; the pipeline's end is one notice."""
    name = feed.name_of(session, access.user_id)
    until = feed.read_until(session, access.project, access.user_id)
    query = feed.notices_of(access.project, name if mentions else None)
    return paginate(session, query, Notice.id, lambda row: _out(row, until, name), cursor=cursor, limit=limit)


@router.get("/unread", responses=problems(404))
def count_unread_notices(session: Db, access: Reader) -> UnreadNotices:
    """How many notices the caller has not read."""
    notices, mentions = feed.unread(session, access.project, access.user_id)
    return UnreadNotices(notices=notices, mentions=mentions)


@router.post("/read", status_code=204, responses=problems(404))
def mark_notices_read(body: NoticesRead, session: Db, access: Reader) -> None:
    """Remember how far the caller has read. A token without a person remembers nothing."""
    if access.user_id is not None:
        feed.mark_read(session, access.project, access.user_id, body.until)


def _out(row: Notice, until: int, name: str) -> NoticeOut:
    said = message_of({"type": row.event, "data": {**row.data, "url": row.data["path"]}})
    return NoticeOut.model_validate(
        {
            "id": row.id,
            "event": row.event,
            "title": said.title,
            "reason": said.reason,
            "path": said.url,
            "unread": row.id > until,
            "mentions_you": name in row.data.get("mentioned", ()),
            "created_at": row.created_at,
        }
    )
