"""Compares two datasets: which rows were added, removed or changed, and a page of them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.orm import Session

from steerboard.datasets.array_cache import ARRAYS
from steerboard.datasets.differences.lineage import family, matched_rows
from steerboard.datasets.differences.matching import NONE, Places, RowHashes, match
from steerboard.datasets.differences.schemas import Change, Difference, DifferentRow, Version
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.queries import sample_out
from steerboard.datasets.samples.reading import samples_in_order
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.platform.row_sizes import PAGE_BYTES, weight
from steerboard_contracts.errors import BadInput

_HASHES = text(
    """
    SELECT string_agg(int8send(prompt), ''::bytea ORDER BY row), string_agg(int8send(rest), ''::bytea ORDER BY row)
    FROM (SELECT row, hashtextextended((sample -> 'prompt')::text, 0) AS prompt,
                 hashtextextended((sample - 'prompt')::text, 0) AS rest
          FROM samples WHERE dataset_id = :dataset ORDER BY row) AS hashed
    """
)
# Rows of two versions that may differ; what was edited twice may be as it was.
_DIFFERING = text(
    """
    SELECT asked.at FROM unnest(CAST(:before AS int[]), CAST(:after AS int[])) WITH ORDINALITY AS asked (b, a, at)
    JOIN samples old ON old.dataset_id = :old AND old.row = asked.b
    JOIN samples new ON new.dataset_id = :new AND new.row = asked.a
    WHERE old.sample IS DISTINCT FROM new.sample
    """
)


@dataclass(frozen=True)
class Compared:
    """`pairs`: rows (before, after) that differ, in their order, with -1 for none."""

    pairs: NDArray[np.int64]
    same: int
    by: Literal["version", "content"]

    @property
    def nbytes(self) -> int:
        return self.pairs.nbytes

    def of(self, change: Change | None) -> NDArray[np.int64]:
        """The pairs of one kind of change."""
        before, after = self.pairs[:, 0] != NONE, self.pairs[:, 1] != NONE
        masks = {"added": ~before, "removed": ~after, "changed": before & after}
        return self.pairs if change is None else self.pairs[masks[change]]


def versions_of(session: Session, dataset: Dataset) -> list[Version]:
    """The family of a dataset, the oldest first."""
    return [_version(member) for member in family(session, dataset)]


def difference(session: Session, before: Dataset, after: Dataset) -> Difference:
    """Raises `BadInput` (`different_kinds`)."""
    compared = compare(session, before, after)
    counts = {change: len(compared.of(change)) for change in ("added", "removed", "changed")}
    return Difference(before=before.name, after=after.name, by=compared.by, same=compared.same, **counts)


def compare(session: Session, before: Dataset, after: Dataset) -> Compared:
    """Rows never change, so this is worked out once while it is looked at. Raises `BadInput` (`different_kinds`)."""
    if before.kind != after.kind:
        raise BadInput(
            f"{before.name!r} holds {before.kind} and {after.name!r} {after.kind}",
            code="different_kinds",
            hint="Compare datasets of one kind.",
        )
    return ARRAYS.get(("difference", before.id, after.id), lambda: _compare(session, before, after))


def page(
    session: Session, before: Dataset, after: Dataset, change: Change | None, start: int, limit: int
) -> tuple[list[DifferentRow], int | None]:
    """Rows from the place `start` on, and the place after them. It ends early where rows are large."""
    pairs = compare(session, before, after).of(change)
    shown = pairs[start : start + limit]
    olds = samples_in_order(session, before, [row for row in shown[:, 0].tolist() if row != NONE])
    news = samples_in_order(session, after, [row for row in shown[:, 1].tolist() if row != NONE])
    rows: list[DifferentRow] = []
    size = 0
    with closing(olds), closing(news):
        for old_row, new_row in shown.tolist():
            if rows and size >= PAGE_BYTES:
                break
            old = next(olds) if old_row != NONE else None
            new = next(news) if new_row != NONE else None
            size += sum(weight(sample) for sample in (old, new) if sample is not None)
            rows.append(_different(old, new))
    following = start + len(rows)
    return rows, following if following < len(pairs) else None


def _compare(session: Session, before: Dataset, after: Dataset) -> Compared:
    matched = matched_rows(session, before, after)
    if matched is not None:
        partner, touched = matched
        changed = np.zeros(len(partner), np.bool_)
        changed[_differing(session, before, after, touched, partner[touched])] = True
        return _compared(partner, changed, after.rows, "version")
    matching = match(_hashes(session, owner_of(before)), _hashes(session, owner_of(after)))
    return _compared(matching.partner, matching.changed, after.rows, "content")


def _compared(
    partner: Places, changed: NDArray[np.bool_], rows_after: int, by: Literal["version", "content"]
) -> Compared:
    kept = partner != NONE
    differ = np.flatnonzero(~kept | changed)
    new = np.ones(rows_after, np.bool_)
    new[partner[kept]] = False
    added = np.flatnonzero(new)
    # An added row comes after the row before it that both have.
    place_of = np.full(rows_after, NONE, np.int64)
    place_of[partner[kept]] = np.flatnonzero(kept)
    behind = np.maximum.accumulate(place_of)[added] if len(added) else added
    pairs = np.concatenate(
        [np.column_stack([differ, partner[differ]]), np.column_stack([np.full(len(added), NONE), added])]
    )
    places = np.r_[differ * 2, behind * 2 + 1]
    order = np.lexsort([pairs[:, 1], places])
    return Compared(pairs[order], int((kept & ~changed).sum()), by)


def _hashes(session: Session, owner: uuid.UUID) -> RowHashes:
    def read() -> RowHashes:
        prompts, rest = session.execute(_HASHES, {"dataset": owner}).one()
        return RowHashes(*(np.frombuffer(packed or b"", ">i8").astype(np.int64) for packed in (prompts, rest)))

    return ARRAYS.get(("row hashes", owner), read)


def _differing(session: Session, before: Dataset, after: Dataset, rows: Places, partners: Places) -> Places:
    parameters = {"before": rows.tolist(), "after": partners.tolist(), "old": owner_of(before), "new": owner_of(after)}
    places: Sequence[int] = session.scalars(_DIFFERING, parameters).all()
    return rows[np.array(places, np.int64) - 1]


def _different(old: SampleRow | None, new: SampleRow | None) -> DifferentRow:
    change: Change = "added" if old is None else "removed" if new is None else "changed"
    fields: list[str] = []
    if old is not None and new is not None:
        names = dict.fromkeys([*old.sample, *new.sample])
        fields = [name for name in names if old.sample.get(name) != new.sample.get(name)]
    return DifferentRow(
        change=change,
        before=sample_out(old, None, whole=False) if old else None,
        after=sample_out(new, None, whole=False) if new else None,
        fields=fields,
    )


def _version(dataset: Dataset) -> Version:
    origin = dataset.origin
    return Version(
        id=dataset.id,
        name=dataset.name,
        rows=dataset.rows,
        held_out_rows=dataset.held_out_rows,
        made_by=str(origin.get("type", "file")),
        parent_id=dataset.parent_id,
        actor=origin.get("actor"),
        dropped=sum((origin.get("dropped") or {}).values()),
        edited=int(origin.get("flipped", 0)) + int(origin.get("edited", 0)),
        created_at=dataset.created_at,
    )
