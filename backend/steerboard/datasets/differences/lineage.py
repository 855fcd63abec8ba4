"""Families of versions, and where a row of one is in another: the records of cleaning and edits give it exactly,
without a look at the rows."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.differences.matching import NONE, Places
from steerboard.datasets.tables import Dataset, DroppedRowRecord

VERSIONS = ("cleaning", "edit")
_MOST_VERSIONS = 500


@dataclass(frozen=True)
class Descent:
    """`rows`: by row of a version, the row of its ancestor. `touched`: rows of the ancestor that some version on the
    way edited."""

    rows: Places
    touched: Places


def ancestors(session: Session, dataset: Dataset) -> list[Dataset]:
    """The dataset and the versions that it was made from, up to the first of them."""
    chain = [dataset]
    while chain[-1].parent_id is not None and chain[-1].origin.get("type") in VERSIONS:
        parent = session.get(Dataset, chain[-1].parent_id)
        if parent is None or len(chain) > _MOST_VERSIONS:
            break
        chain.append(parent)
    return chain


def family(session: Session, dataset: Dataset) -> list[Dataset]:
    """Every version of the same first dataset, the oldest first; the newest 500 where there are more."""
    root = ancestors(session, dataset)[-1]
    known: dict[uuid.UUID, Dataset] = {root.id: root}
    parents = [root.id]
    while parents and len(known) < _MOST_VERSIONS:
        made = select(Dataset).where(Dataset.parent_id.in_(parents), Dataset.origin["type"].astext.in_(VERSIONS))
        new = [row for row in session.scalars(made) if row.id not in known]
        known.update((row.id, row) for row in new)
        parents = [row.id for row in new]
    return sorted(known.values(), key=lambda row: row.id)


def matched_rows(session: Session, before: Dataset, after: Dataset) -> tuple[Places, Places] | None:
    """(partner, touched) of two versions of one dataset: by row of `before` the row of `after` or -1, and the rows of
    `before` that may differ from their partner. None where they are no versions of one dataset."""
    of_before, of_after = ancestors(session, before), ancestors(session, after)
    in_both = {link.id for link in of_before} & {link.id for link in of_after}
    common = next((link for link in of_before if link.id in in_both), None)
    if common is None:
        return None
    old, new = _descent(session, of_before, common), _descent(session, of_after, common)
    if old is None or new is None:
        return None
    where = np.full(common.rows, NONE, np.int64)
    where[new.rows] = np.arange(len(new.rows))
    touched = np.zeros(common.rows, np.bool_)
    touched[old.touched] = touched[new.touched] = True
    partner = where[old.rows]
    return partner, np.flatnonzero(touched[old.rows] & (partner != NONE))


def _descent(session: Session, chain: list[Dataset], ancestor: Dataset) -> Descent | None:
    """Returns None where a version's record does not account for all of its rows."""
    rows: Places = np.arange(chain[0].rows)
    touched: NDArray[np.int64] = np.zeros(0, np.int64)
    for version, parent in pairwise(chain):
        if version.id == ancestor.id:
            break
        dropped = session.scalars(select(DroppedRowRecord.row).where(DroppedRowRecord.dataset_id == version.id)).all()
        kept = np.delete(np.arange(parent.rows), np.array(dropped, np.int64))
        if len(kept) != version.rows:
            return None
        edited = [*version.origin.get("flipped_rows", ()), *version.origin.get("edited_rows", ())]
        rows, touched = kept[rows], np.r_[kept[touched], np.array(edited, np.int64)]
    return Descent(rows, np.unique(touched))
