"""Which versions of a dataset, or of one that it was made from, changed held-out rows. Kept in the origin, so that it
reaches what is made of the dataset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset, SampleRow
from steerboard_contracts.held_out_changes import HeldOutChange, merged

# The place in the origin.
CHANGES = "held_out_changes"


def changes_of(dataset: Dataset) -> list[HeldOutChange]:
    return [HeldOutChange.model_validate(change) for change in dataset.origin.get(CHANGES, ())]


def inherited_changes(*sources: Dataset) -> dict[str, Any]:
    """What goes into the origin of what is made of `sources`; empty where none has changed rows."""
    return as_origin(merged(*map(changes_of, sources)))


def as_origin(changes: Iterable[HeldOutChange]) -> dict[str, Any]:
    documents = [change.model_dump(mode="json") for change in changes]
    return {CHANGES: documents} if documents else {}


def count_held_out(session: Session, dataset: Dataset, rows: Iterable[int]) -> int:
    """How many of `rows` are held out."""
    conditions = SampleRow.dataset_id == dataset.id, SampleRow.row.in_(sorted(rows)), SampleRow.held_out
    return session.scalar(select(func.count()).where(*conditions)) or 0
