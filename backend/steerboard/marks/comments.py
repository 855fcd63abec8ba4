"""Comments on things of a project. Callers commit and audit."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Protocol

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access
from steerboard.marks import mentions
from steerboard.marks.markdown import as_html
from steerboard.marks.schemas import CommentOut, ItemType
from steerboard.marks.tables import ItemComment
from steerboard.platform.http.errors import Conflict, Forbidden, NotFound

MOST_COMMENTS = 500


class Comment(Protocol):
    """A comment on a thing, or on a row."""

    @property
    def id(self) -> uuid.UUID: ...
    @property
    def text(self) -> str: ...
    @property
    def actor(self) -> str: ...
    @property
    def created_at(self) -> dt.datetime: ...
    @property
    def edited_at(self) -> dt.datetime | None: ...


def comment_out(access: Access, comment: Comment) -> CommentOut:
    """The comment as the caller sees it."""
    return CommentOut(
        id=comment.id,
        text=comment.text,
        html=as_html(comment.text),
        actor=comment.actor,
        created_at=comment.created_at,
        edited_at=comment.edited_at,
        mine=comment.actor == access.actor,
        deletable=comment.actor == access.actor or "admin" in access.scopes,
    )


def check_mine(access: Access, comment: Comment) -> None:
    """Raises `Forbidden`."""
    if comment.actor != access.actor:
        raise Forbidden("the comment is not yours", hint="Only its author edits it.")


def check_deletable(access: Access, comment: Comment) -> None:
    """Raises `Forbidden`."""
    if not comment_out(access, comment).deletable:
        raise Forbidden("the comment is not yours", hint="Its author and owners of the project delete it.")


def comments_of(session: Session, access: Access, item_id: uuid.UUID) -> list[CommentOut]:
    """The oldest first."""
    kept = select(ItemComment).where(ItemComment.project_id == access.project.id, ItemComment.item_id == item_id)
    return [comment_out(access, comment) for comment in session.scalars(kept.order_by(ItemComment.id))]


def add(session: Session, access: Access, type_: ItemType, item_id: uuid.UUID, name: str, text: str) -> CommentOut:
    """Raises `Conflict` (`too_many_comments`)."""
    of_item = select(func.count()).select_from(ItemComment).where(ItemComment.item_id == item_id)
    if (session.scalar(of_item) or 0) >= MOST_COMMENTS:
        raise Conflict(
            f"a {type_} has at most {MOST_COMMENTS} comments", code="too_many_comments", hint="Delete some of yours."
        )
    made = ItemComment(project_id=access.project.id, type=type_, item_id=item_id, text=text, actor=access.actor)
    session.add(made)
    session.flush()
    session.refresh(made)
    mentions.tell(session, access, made.id, f"{type_} {name}", _page_of(made), text)
    return comment_out(access, made)


def edit(session: Session, access: Access, comment_id: uuid.UUID, text: str, name: str) -> CommentOut:
    """`name`: of the thing. Raises `NotFound`, `Forbidden` for someone else's."""
    comment = get_comment(session, access, comment_id)
    check_mine(access, comment)
    before, comment.text = comment.text, text
    comment.edited_at = session.scalar(select(func.clock_timestamp()))
    session.flush()
    mentions.tell(session, access, comment.id, f"{comment.type} {name}", _page_of(comment), text, before)
    return comment_out(access, comment)


def delete(session: Session, access: Access, comment_id: uuid.UUID) -> ItemComment:
    """Raises `NotFound`, `Forbidden` for someone else's."""
    comment = get_comment(session, access, comment_id)
    check_deletable(access, comment)
    session.delete(comment)
    return comment


def get_comment(session: Session, access: Access, comment_id: uuid.UUID) -> ItemComment:
    """Raises `NotFound`, also for another project's."""
    comment = session.get(ItemComment, comment_id)
    if comment is None or comment.project_id != access.project.id:
        raise NotFound(f"there is no comment {comment_id}", hint="It may have been deleted.")
    return comment


def _page_of(comment: ItemComment) -> str:
    return f"/{comment.type}s/{comment.item_id}"
