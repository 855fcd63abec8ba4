"""A new version of a dataset with rows dropped, flipped or edited. Callers own the transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.creation import complete, new_dataset
from steerboard.datasets.edits.schemas import EditCreate, EditOrigin
from steerboard.datasets.errors import HeldOutFlips, NothingPending
from steerboard.datasets.flips import FLIPPED
from steerboard.datasets.held_out_changes import as_origin, changes_of, count_held_out
from steerboard.datasets.lookup import announce
from steerboard.datasets.review.remarks import carry_over
from steerboard.datasets.review.tables import RowChange
from steerboard.datasets.rows.copying import INHERITED, write_changed
from steerboard.datasets.rows.exporting import StoredRow
from steerboard.datasets.tables import Dataset, DroppedRowRecord
from steerboard.datasets.versions import next_version
from steerboard.platform.names import check_name
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.held_out_changes import HeldOutChange
from steerboard_contracts.samples import SampleKind

MARKED = "marked"
# Labels of the held-out split are what figures are measured against: they are corrected one by one, never in bulk.
MOST_HELD_OUT_FLIPS = 1


@dataclass(frozen=True)
class Edits:
    """Rows to leave out, rows to flip, and what others become."""

    drop: set[int]
    flip: set[int]
    samples: Mapping[int, dict[str, Any]] = field(default_factory=dict)


def edit(session: Session, project: Project, dataset: Dataset, given: EditCreate, actor: str) -> Dataset:
    """Raises `BadInput` (`wrong_kind`, `unknown_rows`, `invalid_name`), `HeldOutFlips`, `EmptySelection`,
    `NameTaken`."""
    edits = Edits(set(given.drop), set(given.flip))
    _check(dataset, edits)
    return _version(session, project, dataset, edits, given.name, actor)


def version_of_changes(session: Session, project: Project, dataset: Dataset, name: str | None, actor: str) -> Dataset:
    """A version with all pending changes, which end with it. A change that someone makes meanwhile stays pending.

    Raises `NothingPending`, and otherwise as `edit`."""
    changes = select(RowChange).where(RowChange.dataset_id == dataset.id).order_by(RowChange.row)
    pending = session.scalars(changes.with_for_update()).all()
    if not pending:
        raise NothingPending(
            f"{dataset.name!r} has no pending changes", hint="Edit, flip or remove rows first, or look at its versions."
        )
    edits = Edits(
        drop={change.row for change in pending if change.sample is None},
        flip={change.row for change in pending if change.flips},
        samples={change.row: change.sample for change in pending if change.sample is not None and not change.flips},
    )
    made = _version(session, project, dataset, edits, name, actor)
    rows = [change.row for change in pending]
    session.execute(delete(RowChange).where(RowChange.dataset_id == dataset.id, RowChange.row.in_(rows)))
    return made


def _version(
    session: Session, project: Project, dataset: Dataset, edits: Edits, wanted: str | None, actor: str
) -> Dataset:
    drop, flip, samples = edits.drop, edits.flip, edits.samples
    if len(drop) == dataset.rows:
        raise EmptySelection(f"no row of {dataset.name!r} would be left", hint="Keep at least one.")
    flipped_held_out = count_held_out(session, dataset, flip)
    if flipped_held_out > MOST_HELD_OUT_FLIPS:
        raise HeldOutFlips(
            f"{flipped_held_out:,} rows to flip in {dataset.name!r} are held out; a version may flip one such row",
            hint="Leave held-out rows as they are, or correct a single wrong one by hand.",
        )
    here = HeldOutChange(
        dataset="",
        dataset_id=dataset.id,
        flipped=flipped_held_out,
        dropped=count_held_out(session, dataset, drop),
        edited=count_held_out(session, dataset, samples),
    )
    name = check_name(wanted) if wanted is not None else next_version(session, project, dataset, "edited")
    making = new_dataset(
        session, project, name, cast(SampleKind, dataset.kind), hold_out=dataset.origin.get("split") != "train"
    )
    with session.begin_nested(), making as (made, writer_for):

        def change(row: StoredRow) -> Any:
            if row.row in drop:
                return None
            if row.row in flip:
                return FLIPPED[dataset.kind](orjson.loads(row.sample))
            return samples.get(row.row) or orjson.Fragment(row.sample)

        writer = write_changed(session, dataset, writer_for, change)
        about = EditOrigin(
            of=dataset.name,
            of_id=str(dataset.id),
            read=dataset.rows,
            dropped={MARKED: len(drop)} if drop else {},
            flipped=len(flip),
            flipped_rows=sorted(flip),
            edited=len(samples),
            edited_rows=sorted(samples),
            actor=actor,
        )
        inherited = {key: dataset.origin[key] for key in INHERITED if key in dataset.origin}
        made.parent_id = dataset.id
        changes = changes_of(dataset)
        if here.flipped or here.dropped or here.edited:
            changes.append(here.model_copy(update={"dataset": made.name, "dataset_id": made.id}))
        made.origin = {**inherited, **about.model_dump(), **writer.about(), **as_origin(changes)}
        complete(session, made, writer, None)
        if drop:
            session.execute(
                insert(DroppedRowRecord),
                [{"dataset_id": made.id, "row": row, "rule": MARKED} for row in sorted(drop)],
            )
        carry_over(session, dataset, made)
        announce(session, made)
    return made


def _check(dataset: Dataset, edits: Edits) -> None:
    if dataset.kind not in FLIPPED:
        raise BadInput(
            f"{dataset.name!r} holds {dataset.kind}; only preferences have sides to flip, and unpaired answers a thumb",
            code="wrong_kind",
            hint="Give a dataset of preferences, or of unpaired answers.",
        )
    unknown = sorted(row for row in edits.drop | edits.flip if row >= dataset.rows)
    if unknown:
        raise BadInput(
            f"{dataset.name!r} has no row {unknown[0]}: it has {dataset.rows:,}, counted from 0",
            code="unknown_rows",
            hint="Take the numbers from its samples, or from a run that was trained on it.",
        )
