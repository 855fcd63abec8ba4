"""Flags and comments of rows. Callers own the transaction."""

from __future__ import annotations

import uuid

from sqlalchemy import delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access
from steerboard.datasets.review.changes import stored_sample
from steerboard.datasets.review.schemas import RowFlagOut
from steerboard.datasets.review.tables import RowComment, RowFlag
from steerboard.datasets.tables import Dataset
from steerboard.marks import mentions
from steerboard.marks.comments import check_deletable, check_mine, comment_out
from steerboard.marks.schemas import CommentOut
from steerboard.platform.http.errors import Conflict, NotFound

MOST_COMMENTS = 200

# Rows that a version kept have the number that they had, less the dropped ones before them.
_PLACE = """
    {table}.row - (SELECT count(*) FROM dropped_rows gone
                   WHERE gone.dataset_id = :version AND gone.row < {table}.row)
"""
_KEPT = """
    {table}.dataset_id = :parent
    AND NOT EXISTS (SELECT FROM dropped_rows gone WHERE gone.dataset_id = :version AND gone.row = {table}.row)
"""
_CARRY_FLAGS = text(
    f"""
    INSERT INTO row_flags (dataset_id, row, reason, actor, created_at)
    SELECT :version, {_PLACE.format(table="row_flags")}, reason, actor, created_at
    FROM row_flags WHERE {_KEPT.format(table="row_flags")}
    """
)
_CARRY_COMMENTS = text(
    f"""
    INSERT INTO row_comments (id, dataset_id, row, text, actor, created_at, edited_at)
    SELECT gen_random_uuid(), :version, {_PLACE.format(table="row_comments")}, text, actor, created_at,
        edited_at
    FROM row_comments WHERE {_KEPT.format(table="row_comments")}
    """
)


def flag(session: Session, dataset: Dataset, row: int, reason: str, actor: str) -> RowFlagOut:
    """Flag a row, or give its flag another reason. Raises `NotFound`."""
    stored_sample(session, dataset, row)
    new = insert(RowFlag).values(dataset_id=dataset.id, row=row, reason=reason, actor=actor)
    session.execute(
        new.on_conflict_do_update(
            index_elements=["dataset_id", "row"], set_={"reason": new.excluded.reason, "actor": new.excluded.actor}
        )
    )
    kept = flag_of(session, dataset, row)
    assert kept is not None
    return kept


def unflag(session: Session, dataset: Dataset, row: int) -> None:
    """Raises `NotFound`."""
    stored_sample(session, dataset, row)
    session.execute(delete(RowFlag).where(RowFlag.dataset_id == dataset.id, RowFlag.row == row))


def flag_of(session: Session, dataset: Dataset, row: int) -> RowFlagOut | None:
    kept = session.get(RowFlag, (dataset.id, row), populate_existing=True)
    if kept is None:
        return None
    return RowFlagOut(reason=kept.reason, actor=kept.actor, created_at=kept.created_at)


def comment(session: Session, access: Access, dataset: Dataset, row: int, words: str) -> CommentOut:
    """Raises `NotFound`, `Conflict` (`too_many_comments`)."""
    stored_sample(session, dataset, row)
    if len(comments_of(session, access, dataset, row)) >= MOST_COMMENTS:
        raise Conflict(
            f"a row has at most {MOST_COMMENTS} comments", code="too_many_comments", hint="Delete some of yours."
        )
    made = RowComment(dataset_id=dataset.id, row=row, text=words, actor=access.actor)
    session.add(made)
    session.flush()
    session.refresh(made)
    mentions.tell(session, access, made.id, _about(dataset, row), _page_of(dataset, row), words)
    return comment_out(access, made)


def comments_of(session: Session, access: Access, dataset: Dataset, row: int) -> list[CommentOut]:
    """The oldest first."""
    comments = select(RowComment).where(RowComment.dataset_id == dataset.id, RowComment.row == row)
    order = RowComment.created_at, RowComment.id
    return [comment_out(access, comment) for comment in session.scalars(comments.order_by(*order))]


def edit_comment(session: Session, access: Access, dataset: Dataset, comment_id: uuid.UUID, words: str) -> CommentOut:
    """Raises `NotFound`, `Forbidden` for someone else's."""
    kept = _get_comment(session, dataset, comment_id)
    check_mine(access, kept)
    before, kept.text = kept.text, words
    kept.edited_at = session.scalar(select(func.clock_timestamp()))
    session.flush()
    mentions.tell(session, access, kept.id, _about(dataset, kept.row), _page_of(dataset, kept.row), words, before)
    return comment_out(access, kept)


def delete_comment(session: Session, access: Access, dataset: Dataset, comment_id: uuid.UUID) -> RowComment:
    """Raises `NotFound`, `Forbidden` for someone else's."""
    kept = _get_comment(session, dataset, comment_id)
    check_deletable(access, kept)
    session.delete(kept)
    return kept


def _get_comment(session: Session, dataset: Dataset, comment_id: uuid.UUID) -> RowComment:
    kept = session.get(RowComment, comment_id)
    if kept is None or kept.dataset_id != dataset.id:
        raise NotFound(f"{dataset.name!r} has no comment {comment_id}", hint="It may have been deleted.")
    return kept


def _about(dataset: Dataset, row: int) -> str:
    return f"row {row} of dataset {dataset.name}"


def _page_of(dataset: Dataset, row: int) -> str:
    return f"/datasets/{dataset.id}?row={row}"


def carry_over(session: Session, parent: Dataset, version: Dataset) -> None:
    """Give a new version the flags and comments of the rows that it kept, whose dropped rows are recorded already."""
    session.flush()
    for statement in (_CARRY_FLAGS, _CARRY_COMMENTS):
        session.execute(statement, {"parent": parent.id, "version": version.id})
