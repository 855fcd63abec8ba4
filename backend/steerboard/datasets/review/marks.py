"""Which rows have changes, flags or comments: for filters, for a page of samples, and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, distinct, func, select
from sqlalchemy.orm import Session

from steerboard.datasets.review.schemas import Marked, ReviewSummary
from steerboard.datasets.review.tables import RowChange, RowComment, RowFlag
from steerboard.datasets.schemas import RowMarks
from steerboard.datasets.tables import Dataset

_TABLES: dict[Marked, Any] = {"flagged": RowFlag, "commented": RowComment, "changed": RowChange}


def marked_rows(session: Session, dataset: Dataset, marked: Marked) -> list[int]:
    """The marked rows in no order, and those of comments with repetitions."""
    table = _TABLES[marked]
    return list(session.scalars(select(table.row).where(table.dataset_id == dataset.id)))


def marks_of_rows(session: Session, dataset: Dataset, rows: Sequence[int]) -> dict[int, RowMarks]:
    """The marks of those rows that have any."""

    def these(table: Any, *columns: Any) -> Select[Any]:
        return select(table.row, *columns).where(table.dataset_id == dataset.id, table.row.in_(rows))

    if not rows:
        return {}
    flagged = set(session.scalars(these(RowFlag)))
    comments: dict[int, int] = dict(session.execute(these(RowComment, func.count()).group_by(RowComment.row)).all())
    removed: dict[int, bool] = dict(session.execute(these(RowChange, RowChange.sample.is_(None))).all())
    return {
        row: RowMarks(
            flagged=row in flagged,
            comments=comments.get(row, 0),
            change=None if row not in removed else "remove" if removed[row] else "edit",
        )
        for row in flagged | comments.keys() | removed.keys()
    }


def summary(session: Session, dataset: Dataset) -> ReviewSummary:
    in_dataset = RowChange.dataset_id == dataset.id
    is_removed, flips = RowChange.sample.is_(None), RowChange.flips
    counts = session.execute(
        select(
            func.count().filter(~is_removed, ~flips),
            func.count().filter(flips),
            func.count().filter(is_removed),
            func.array_agg(distinct(RowChange.actor)),
            func.max(RowChange.changed_at),
        ).where(in_dataset)
    ).one()
    edited, flipped, removed, actors, changed_at = counts
    flagged = session.scalars(select(func.count()).where(RowFlag.dataset_id == dataset.id)).one()
    commented = session.scalars(
        select(func.count(distinct(RowComment.row))).where(RowComment.dataset_id == dataset.id)
    ).one()
    return ReviewSummary(
        edited=edited,
        flipped=flipped,
        removed=removed,
        flagged=flagged,
        commented=commented,
        actors=actors or [],
        changed_at=changed_at,
    )
