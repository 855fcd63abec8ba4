"""A new version of a dataset of pairs, or of answers with a thumb, with marked rows dropped or flipped. Callers own
the transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import orjson
from sqlalchemy import insert
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.creation import complete, new_dataset
from steerboard.datasets.edits.schemas import EditCreate, EditOrigin
from steerboard.datasets.errors import HeldOutFlips
from steerboard.datasets.held_out_changes import as_origin, changes_of, count_held_out
from steerboard.datasets.lookup import announce
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


def edit(session: Session, project: Project, dataset: Dataset, given: EditCreate, actor: str) -> Dataset:
    """Raises `BadInput` (`wrong_kind`, `unknown_rows`, `invalid_name`), `HeldOutFlips`, `EmptySelection`,
    `NameTaken`."""
    drop, flip = set(given.drop), set(given.flip)
    _check(dataset, drop, flip)
    flipped_held_out = count_held_out(session, dataset, flip)
    if flipped_held_out > MOST_HELD_OUT_FLIPS:
        raise HeldOutFlips(
            f"{flipped_held_out:,} rows to flip in {dataset.name!r} are held out; a version may flip one such row",
            hint="Leave held-out rows as they are, or correct a single wrong one by hand.",
        )
    dropped_held_out = count_held_out(session, dataset, drop)
    name = check_name(given.name) if given.name is not None else next_version(session, project, dataset, "edited")
    making = new_dataset(
        session, project, name, cast(SampleKind, dataset.kind), hold_out=dataset.origin.get("split") != "train"
    )
    with session.begin_nested(), making as (made, writer_for):

        def change(row: StoredRow) -> Any:
            if row.row in drop:
                return None
            return FLIPPED[dataset.kind](row.sample) if row.row in flip else orjson.Fragment(row.sample)

        writer = write_changed(session, dataset, writer_for, change)
        about = EditOrigin(
            of=dataset.name,
            of_id=str(dataset.id),
            read=dataset.rows,
            dropped={MARKED: len(drop)} if drop else {},
            flipped=len(flip),
            flipped_rows=sorted(flip),
            actor=actor,
        )
        inherited = {key: dataset.origin[key] for key in INHERITED if key in dataset.origin}
        made.parent_id = dataset.id
        changes = changes_of(dataset)
        if flipped_held_out or dropped_held_out:
            here = HeldOutChange(
                dataset=made.name, dataset_id=made.id, flipped=flipped_held_out, dropped=dropped_held_out
            )
            changes.append(here)
        made.origin = {**inherited, **about.model_dump(), **writer.about(), **as_origin(changes)}
        complete(session, made, writer, None)
        if drop:
            session.execute(
                insert(DroppedRowRecord),
                [{"dataset_id": made.id, "row": row, "rule": MARKED} for row in sorted(drop)],
            )
        announce(session, made)
    return made


def _check(dataset: Dataset, drop: set[int], flip: set[int]) -> None:
    if dataset.kind not in FLIPPED:
        raise BadInput(
            f"{dataset.name!r} holds {dataset.kind}; only preferences have sides to flip, and unpaired answers a thumb",
            code="wrong_kind",
            hint="Give a dataset of preferences, or of unpaired answers.",
        )
    unknown = sorted(row for row in drop | flip if row >= dataset.rows)
    if unknown:
        raise BadInput(
            f"{dataset.name!r} has no row {unknown[0]}: it has {dataset.rows:,}, counted from 0",
            code="unknown_rows",
            hint="Take the numbers from its samples, or from a run that was trained on it.",
        )
    if len(drop) == dataset.rows:
        raise EmptySelection(f"no row of {dataset.name!r} would be left", hint="Keep at least one.")


def _sides_changed(sample: str) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(sample)
    fields["chosen"], fields["rejected"] = fields["rejected"], fields["chosen"]
    fields.pop("margin", None)
    return fields


def _thumb_turned(sample: str) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(sample)
    fields["desirable"] = not fields["desirable"]
    return fields


FLIPPED: dict[str, Callable[[str], dict[str, Any]]] = {"preferences": _sides_changed, "unpaired": _thumb_turned}
