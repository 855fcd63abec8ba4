"""Changes, flags and comments of rows over HTTP, below `/api/v1/projects/{project}/datasets`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Path, Query
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.lookup import get_dataset, owner_of
from steerboard.datasets.queries import sample_out
from steerboard.datasets.review import changes, marks, remarks
from steerboard.datasets.review.schemas import (
    Discarded,
    PendingRow,
    ReviewSummary,
    RowChangeIn,
    RowChangeOut,
    RowFlagIn,
    RowFlagOut,
    RowReview,
)
from steerboard.datasets.review.tables import RowChange
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.marks.schemas import CommentIn, CommentOut
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/{dataset}/review")

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]
Number = Annotated[int, Path(ge=0, lt=2**31, description="The row, counted from 0.")]


@router.get("", responses=problems(404))
def get_review(session: Db, access: Read, dataset: str) -> ReviewSummary:
    """How many rows have pending changes, flags and comments."""
    return marks.summary(session, get_dataset(session, access.project, dataset))


@router.get("/changes", responses=problems(404))
def list_pending_changes(
    session: Db,
    access: Read,
    dataset: str,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Page[PendingRow]:
    """The changes that the next version will have, in the order of their rows."""
    stored = get_dataset(session, access.project, dataset)
    return paginate(
        session,
        select(RowChange).where(RowChange.dataset_id == stored.id),
        RowChange.row,
        lambda change: _pending(session, stored, [change])[0],
        cursor=cursor,
        limit=limit,
        newest_first=False,
        convert_all=lambda page: _pending(session, stored, page),
    )


@router.delete("/changes", responses=problems(404))
def discard_changes(session: Db, access: Write, dataset: str) -> Discarded:
    """Discard all pending changes. Flags and comments stay."""
    stored = get_dataset(session, access.project, dataset)
    gone = changes.discard_all(session, stored)
    audit(session, access, "dataset.discard_changes", stored.name, {"rows": gone})
    return Discarded(rows=gone)


@router.get("/rows/{number}", responses=problems(404))
def get_row_review(session: Db, access: Read, dataset: str, number: Number) -> RowReview:
    """One row as it is stored, with its pending change, flag and comments."""
    stored = get_dataset(session, access.project, dataset)
    sample = changes.stored_sample(session, stored, number)
    change = changes.change_of(session, stored, number)
    return RowReview(
        row=number,
        sample=sample.sample,
        change=changes.change_out(change) if change else None,
        flag=remarks.flag_of(session, stored, number),
        comments=remarks.comments_of(session, access, stored, number),
    )


@router.put("/rows/{number}/change", responses=problems(404, 409))
def change_row(session: Db, access: Write, dataset: str, number: Number, body: RowChangeIn) -> RowChangeOut | None:
    """Keep a change for the next version, in place of an earlier one of this row. Null: the row is as it is stored, and
    nothing is pending. `row_changed` means that someone else has changed it since `based_on`."""
    stored = get_dataset(session, access.project, dataset)
    kept = changes.keep(session, stored, number, body, access.actor)
    return changes.change_out(kept) if kept else None


@router.delete("/rows/{number}/change", status_code=204, responses=problems(404, 409))
def undo_row_change(
    session: Db,
    access: Write,
    dataset: str,
    number: Number,
    based_on: Annotated[uuid.UUID | None, Query(description="The `revision` that is undone.")] = None,
) -> None:
    """Undo the pending change of one row."""
    changes.undo(session, get_dataset(session, access.project, dataset), number, based_on)


@router.put("/rows/{number}/flag", responses=problems(404))
def flag_row(session: Db, access: Write, dataset: str, number: Number, body: RowFlagIn) -> RowFlagOut:
    """Flag a row, with a reason or without. New versions keep the flag."""
    stored = get_dataset(session, access.project, dataset)
    return remarks.flag(session, stored, number, body.reason, access.actor)


@router.delete("/rows/{number}/flag", status_code=204, responses=problems(404))
def unflag_row(session: Db, access: Write, dataset: str, number: Number) -> None:
    """Remove the flag of a row."""
    remarks.unflag(session, get_dataset(session, access.project, dataset), number)


@router.post("/rows/{number}/comments", status_code=201, responses=problems(404, 409))
def comment_row(session: Db, access: Write, dataset: str, number: Number, body: CommentIn) -> CommentOut:
    """Comment on a row. New versions keep the comment."""
    stored = get_dataset(session, access.project, dataset)
    return remarks.comment(session, access, stored, number, body.text)


@router.patch("/comments/{comment}", responses=problems(403, 404))
def edit_row_comment(session: Db, access: Write, dataset: str, comment: uuid.UUID, body: CommentIn) -> CommentOut:
    """Edit your own comment."""
    stored = get_dataset(session, access.project, dataset)
    return remarks.edit_comment(session, access, stored, comment, body.text)


@router.delete("/comments/{comment}", status_code=204, responses=problems(403, 404))
def delete_comment(session: Db, access: Write, dataset: str, comment: uuid.UUID) -> None:
    """Delete your own comment; owners of the project delete any."""
    stored = get_dataset(session, access.project, dataset)
    gone = remarks.delete_comment(session, access, stored, comment)
    audit(session, access, "dataset.delete_comment", stored.name, {"row": gone.row, "author": gone.actor})


def _pending(session: Session, dataset: Dataset, page: Sequence[RowChange]) -> list[PendingRow]:
    conditions = SampleRow.dataset_id == owner_of(dataset), SampleRow.row.in_([change.row for change in page])
    stored = {sample.row: sample for sample in session.scalars(select(SampleRow).where(*conditions))}
    return [_pending_row(stored[change.row], change) for change in page]


def _pending_row(stored: SampleRow, change: RowChange) -> PendingRow:
    before = sample_out(stored, None, whole=False)
    after = None
    if change.sample is not None:
        changed = SampleRow(
            row=stored.row,
            prompt_hash=stored.prompt_hash,
            held_out=stored.held_out,
            sample=change.sample,
            extra=stored.extra,
        )
        after = sample_out(changed, None, whole=False)
    out = changes.change_out(change)
    # The content is in `after`, cut where it is large.
    return PendingRow(row=stored.row, change=out.model_copy(update={"sample": None}), before=before, after=after)
