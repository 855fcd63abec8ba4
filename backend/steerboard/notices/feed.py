"""The notices that members of a project see in the dashboard, and how far each of them has read."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project, User
from steerboard.notices.tables import Notice, NoticeRead
from steerboard.platform.events import log as events

# More are not counted: a badge shows 99+.
MOST_COUNTED = 100


def add(session: Session, project: Project, event: str, data: dict[str, Any], once: str | None = None) -> None:
    """Add a notice, unless one of the same `once` is there. The event that announces it takes the lock of the project's
    stream first, so that no notice is committed behind one that a member has read."""
    events.emit(session, project.id, "notice.added", {"event": event})
    row = insert(Notice).values(project_id=project.id, event=event, data=data, once=once)
    if once is not None:
        row = row.on_conflict_do_nothing(index_elements=["project_id", "once"], index_where=Notice.once.is_not(None))
    session.execute(row)


def notices_of(project: Project, mentioned: str | None = None) -> Select[Notice]:
    """The project's; with `mentioned` those of comments that name this person."""
    query = select(Notice).where(Notice.project_id == project.id)
    return query if mentioned is None else query.where(_mentions(mentioned))


def read_until(session: Session, project: Project, user_id: uuid.UUID | None) -> int:
    """The id of the last notice that the person has read; 0 before the first."""
    read = select(NoticeRead.until).where(NoticeRead.project_id == project.id, NoticeRead.user_id == user_id)
    return session.scalar(read) or 0


def unread(session: Session, project: Project, user_id: uuid.UUID | None) -> tuple[int, int]:
    """How many notices the person has not read, and how many of these name them; either at most `MOST_COUNTED`."""
    until = read_until(session, project, user_id)
    new = Notice.project_id == project.id, Notice.id > until
    named = _mentions(name_of(session, user_id))
    return _counted(session, *new), _counted(session, *new, named)


def mark_read(session: Session, project: Project, user_id: uuid.UUID, until: int) -> None:
    """Never moves back: of two windows, the one that has read further counts."""
    row = insert(NoticeRead).values(project_id=project.id, user_id=user_id, until=until)
    moved = func.greatest(NoticeRead.until, row.excluded.until)
    session.execute(row.on_conflict_do_update(index_elements=["project_id", "user_id"], set_={"until": moved}))


def name_of(session: Session, user_id: uuid.UUID | None) -> str:
    """The name that mentions use; empty for a token without a person."""
    return session.scalar(select(User.name).where(User.id == user_id)) or ""


def remove_older(session: Session, kept: dt.timedelta) -> None:
    session.execute(delete(Notice).where(Notice.created_at < func.clock_timestamp() - kept))


def _mentions(name: str) -> ColumnElement[bool]:
    return (Notice.event == "comment.mention") & Notice.data["mentioned"].contains([name])


def _counted(session: Session, *conditions: ColumnElement[bool]) -> int:
    some = select(Notice.id).where(*conditions).limit(MOST_COUNTED).subquery()
    return session.scalar(select(func.count()).select_from(some)) or 0
