"""Collections over HTTP, below `/api/v1/projects/{project}`."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.collections import service as collections
from steerboard.datasets.collections.schemas import (
    CollectionCreate,
    CollectionFreeze,
    CollectionOut,
    CollectionRowAdd,
    CollectionRowChanged,
    CollectionRowOut,
)
from steerboard.datasets.collections.tables import Collection, CollectionRow
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate
from steerboard.platform.row_sizes import ROW_BYTES, shown_part, weight

router = Router(prefix="/collections", tags=["collections"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.get("")
def list_collections(session: Db, access: Read) -> list[CollectionOut]:
    """Newest first."""
    query = select(Collection).where(Collection.project_id == access.project.id)
    return collections.collections_out(session, list(session.scalars(query.order_by(Collection.id.desc()))))


@router.post("", status_code=201, responses=problems(409))
def create_collection(body: CollectionCreate, session: Db, access: Write) -> CollectionOut:
    """Create an empty collection."""
    made = collections.create(session, access.project, body.name, body.kind, access.actor)
    audit(session, access, "collection.create", made.name, {"kind": made.kind})
    return collections.collections_out(session, [made])[0]


@router.get("/{collection}", responses=problems(404))
def get_collection(collection: str, session: Db, access: Read) -> CollectionOut:
    """A collection by id or name."""
    return collections.collections_out(session, [collections.find(session, access.project, collection)])[0]


@router.get("/{collection}/rows", responses=problems(404))
def list_collection_rows(
    collection: str,
    session: Db,
    access: Read,
    removed: Annotated[bool, Query(description="The removed rows instead.")] = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Page[CollectionRowOut]:
    """Newest first."""
    stored = collections.find(session, access.project, collection)
    rows = select(CollectionRow).where(
        CollectionRow.collection_id == stored.id,
        CollectionRow.removed_at.is_not(None) if removed else CollectionRow.removed_at.is_(None),
    )
    return paginate(session, rows, CollectionRow.place, _row_out, cursor=cursor, limit=limit)


@router.post("/{collection}/rows", status_code=201, responses=problems(404))
def add_collection_row(collection: str, body: CollectionRowAdd, session: Db, access: Write) -> CollectionRowChanged:
    """Append one sample."""
    stored = collections.find(session, access.project, collection, to_change=True)
    row = collections.add_row(session, stored, body.sample, body.provenance, access.actor)
    audit(session, access, "collection.add_row", stored.name, {"row": str(row.id)})
    return _changed(session, stored, row)


@router.delete("/{collection}/rows/{row}", responses=problems(404))
def remove_collection_row(collection: str, row: uuid.UUID, session: Db, access: Write) -> CollectionRowChanged:
    """Remove a row. It can be restored; datasets that have it are unchanged."""
    return _set_removed(session, access, collection, row, True)


@router.post("/{collection}/rows/{row}/restore", responses=problems(404))
def restore_collection_row(collection: str, row: uuid.UUID, session: Db, access: Write) -> CollectionRowChanged:
    """Restore a removed row at its former place."""
    return _set_removed(session, access, collection, row, False)


@router.post("/{collection}/dataset", status_code=201, responses=problems(404, 409))
def freeze_collection(collection: str, session: Db, access: Write, body: CollectionFreeze | None = None) -> DatasetOut:
    """An immutable dataset of the rows that are there now, each with its provenance in `extra`."""
    stored = collections.find(session, access.project, collection, to_change=True)
    name = body.name if body else None
    dataset = collections.freeze(session, access.project, stored, name, access.actor)
    audit(session, access, "collection.freeze", stored.name, {"dataset": dataset.name, "rows": dataset.rows})
    return dataset_out(session, dataset)


def _set_removed(session: Session, access: Access, ref: str, row_id: uuid.UUID, removed: bool) -> CollectionRowChanged:
    stored = collections.find(session, access.project, ref, to_change=True)
    row = collections.find_row(session, stored, row_id)
    collections.set_removed(session, stored, row, removed)
    audit(session, access, f"collection.{'remove' if removed else 'restore'}_row", stored.name, {"row": str(row.id)})
    return _changed(session, stored, row)


def _changed(session: Session, collection: Collection, row: CollectionRow) -> CollectionRowChanged:
    rows = collections.count_rows(session, collection)
    return CollectionRowChanged(**_row_out(row).model_dump(), rows=rows)


def _row_out(row: CollectionRow) -> CollectionRowOut:
    out = CollectionRowOut.model_validate(row)
    if weight(row.sample) <= ROW_BYTES:
        return out
    return out.model_copy(update={"sample": shown_part(row.sample), "cut": True})
