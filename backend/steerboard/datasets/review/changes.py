"""Pending changes of rows: kept as soon as they are made, until they are in a version or discarded. Callers own the
transaction."""

from __future__ import annotations

import uuid
from typing import Any, cast

from pydantic import ValidationError
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.datasets.flips import FLIPPED
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.review.schemas import RowChangeIn, RowChangeOut
from steerboard.datasets.review.tables import RowChange
from steerboard.datasets.rows.exporting import ordered_fields
from steerboard.datasets.rows.row_writer import sample_fields
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.platform.database import new_id
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard_contracts.errors import BadInput, BadRow, ErrorLocation
from steerboard_contracts.samples import SAMPLE_CLASSES, SampleKind, sample_faults

# All of them are in memory while a version is made.
MOST_CHANGES = 10_000


def stored_sample(session: Session, dataset: Dataset, row: int) -> SampleRow:
    """Raises `NotFound`."""
    sample = session.get(SampleRow, (owner_of(dataset), row))
    if sample is None:
        raise NotFound(
            f"{dataset.name!r} has no row {row}: it has {dataset.rows:,}, counted from 0", hint="List its samples."
        )
    return sample


def change_of(session: Session, dataset: Dataset, row: int, *, lock: bool = False) -> RowChange | None:
    query = select(RowChange).where(RowChange.dataset_id == dataset.id, RowChange.row == row)
    return session.scalar(query.with_for_update() if lock else query)


def keep(session: Session, dataset: Dataset, row: int, given: RowChangeIn, actor: str) -> RowChange | None:
    """The change as it is kept; None, and nothing is pending, where the row is as it was stored.

    Raises `NotFound`, `BadInput` (`wrong_kind`), `BadRow`, and `Conflict` (`row_changed`, `too_many_changes`).
    """
    original = stored_sample(session, dataset, row).sample
    sample = _changed_sample(dataset, original, row, given)
    before = change_of(session, dataset, row, lock=True)
    _check_revision(before, given.based_on, dataset, row)
    if sample == original:
        if before is not None:
            session.delete(before)
            session.flush()
        return None
    values = {
        "sample": sample,
        "flips": sample is not None and dataset.kind in FLIPPED and sample == FLIPPED[dataset.kind](original),
        "revision": new_id(),
        "actor": actor,
        "changed_at": func.clock_timestamp(),
    }
    if before is None:
        pending = session.scalars(select(func.count()).where(RowChange.dataset_id == dataset.id)).one()
        if pending >= MOST_CHANGES:
            raise Conflict(
                f"{dataset.name!r} has {pending:,} pending changes, which is the most",
                code="too_many_changes",
                hint="Make a version of them first.",
            )
        # Someone may have changed the row for the first time at this very moment.
        new = insert(RowChange).values(dataset_id=dataset.id, row=row, **values).on_conflict_do_nothing()
        if session.scalar(new.returning(RowChange.row)) is None:
            raise _changed_meanwhile(dataset, row)
        return change_of(session, dataset, row)
    for name, value in values.items():
        setattr(before, name, value)
    session.flush()
    session.refresh(before)
    return before


def undo(session: Session, dataset: Dataset, row: int, based_on: uuid.UUID | None) -> None:
    """Raises `NotFound`, `Conflict` (`row_changed`) where another revision is pending."""
    stored_sample(session, dataset, row)
    before = change_of(session, dataset, row, lock=True)
    if before is None:
        return
    _check_revision(before, based_on, dataset, row)
    session.delete(before)


def discard_all(session: Session, dataset: Dataset) -> int:
    """How many changes there were."""
    gone = session.scalars(delete(RowChange).where(RowChange.dataset_id == dataset.id).returning(RowChange.row)).all()
    return len(gone)


def change_out(change: RowChange) -> RowChangeOut:
    return RowChangeOut(
        action="remove" if change.sample is None else "flip" if change.flips else "edit",
        sample=change.sample,
        revision=change.revision,
        actor=change.actor,
        changed_at=change.changed_at,
    )


def _changed_sample(dataset: Dataset, stored: dict[str, Any], row: int, given: RowChangeIn) -> dict[str, Any] | None:
    if dataset.kind == "labelled":
        raise BadInput(
            f"{dataset.name!r} holds labelled answers, whose rewards were given to these very texts",
            code="wrong_kind",
            hint="Edit the dataset that it was made of, and score that again.",
        )
    if given.action == "remove":
        return None
    if given.action == "flip":
        if dataset.kind not in FLIPPED:
            raise BadInput(
                f"{dataset.name!r} holds {dataset.kind}, which have neither sides nor a thumb",
                code="wrong_kind",
                hint="Only preferences and unpaired answers can be flipped.",
            )
        return FLIPPED[dataset.kind](stored)
    kind = cast(SampleKind, dataset.kind)
    try:
        fields = sample_fields(SAMPLE_CLASSES[kind].model_validate(given.sample))
    except ValidationError as error:
        raise _bad_row(row, sample_faults(error)) from error
    if kind == "preferences" and fields["chosen"] == fields["rejected"]:
        raise _bad_row(row, [("rejected", "is the same as chosen")])
    return ordered_fields(kind, fields)


def _bad_row(row: int, faults: list[tuple[str, str]]) -> BadRow:
    return BadRow(
        f"row {row} cannot be changed so: " + "; ".join(f"{field}: {words}" for field, words in faults),
        hint="Nothing was changed. Correct the fields and send the row again.",
        errors=[ErrorLocation(location=field, message=words) for field, words in faults],
    )


def _check_revision(before: RowChange | None, based_on: uuid.UUID | None, dataset: Dataset, row: int) -> None:
    if (before.revision if before else None) != based_on:
        raise _changed_meanwhile(dataset, row)


def _changed_meanwhile(dataset: Dataset, row: int) -> Conflict:
    return Conflict(
        f"row {row} of {dataset.name!r} was changed by someone else, or its change is in a version now",
        code="row_changed",
        hint="Load the row again, and repeat your change if it is still needed.",
    )
