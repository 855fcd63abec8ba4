"""Single samples become datasets: a collection grows row by row and is frozen as often as people like.

Changes to a collection lock its row first, so a dataset has exactly the rows that were there at one moment.
"""

from __future__ import annotations

import uuid
from itertools import count
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import ValidationError
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from steerboard.accounts.storage_quota import refuse_beyond_storage
from steerboard.accounts.tables import Project
from steerboard.datasets import service
from steerboard.datasets.collections.schemas import CollectionOut, FrozenDataset
from steerboard.datasets.collections.tables import Collection, CollectionDataset, CollectionRow
from steerboard.datasets.errors import NameTaken
from steerboard.datasets.parsing.extras import encode_extra
from steerboard.datasets.rows.row_writer import canonical_json, sample_fields
from steerboard.datasets.tables import Dataset
from steerboard.platform import names
from steerboard.platform.events.log import emit
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import NAME, names_like
from steerboard.platform.storage import scratch
from steerboard.platform.storage.disk import create_file
from steerboard_contracts.errors import BadRow, EmptySelection, ErrorLocation
from steerboard_contracts.samples import SAMPLE_CLASSES, SampleKind, sample_problems
from steerboard_files.records import Limits, Problem

_AT_ONCE = 500


def create(session: Session, project: Project, name: str, kind: SampleKind, actor: str) -> Collection:
    """Raises `NameTaken`."""
    if session.scalar(select(Collection.id).where(Collection.project_id == project.id, Collection.name == name)):
        raise NameTaken(f"there is already a collection {name!r}", hint="Add to it, or choose another name.")
    collection = Collection(project_id=project.id, name=name, kind=kind, created_by=actor)
    session.add(collection)
    session.flush()
    session.refresh(collection)
    _announce(session, collection)
    return collection


def find(session: Session, project: Project, ref: str, *, to_change: bool = False) -> Collection:
    """The collection by id or name; `to_change` locks it until the transaction ends. Raises `NotFound`."""
    query = select(Collection).where(Collection.project_id == project.id)
    collection = None
    if NAME.fullmatch(ref):
        query = query.with_for_update(key_share=True) if to_change else query
        collection = names.find(session, query, Collection.id, Collection.name, ref)
    if collection is None:
        raise NotFound(f"there is no collection {ref!r}", hint="GET collections lists them.")
    return collection


def find_row(session: Session, collection: Collection, row_id: uuid.UUID) -> CollectionRow:
    """Raises `NotFound`."""
    query = select(CollectionRow).where(CollectionRow.collection_id == collection.id, CollectionRow.id == row_id)
    row = session.scalar(query)
    if row is None:
        raise NotFound(f"collection {collection.name!r} has no row {row_id}", hint="List its rows with GET.")
    return row


def add_row(
    session: Session,
    collection: Collection,
    sample: dict[str, Any],
    provenance: dict[str, Any] | None,
    actor: str,
) -> CollectionRow:
    """Check and append one sample; `collection` is locked. Raises `BadRow`."""
    fields = _checked(collection, sample, provenance)
    last = session.scalar(select(func.max(CollectionRow.place)).where(CollectionRow.collection_id == collection.id))
    row = CollectionRow(
        collection_id=collection.id,
        place=0 if last is None else last + 1,
        sample=fields,
        provenance=provenance,
        actor=actor,
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    _announce(session, collection)
    return row


def set_removed(session: Session, collection: Collection, row: CollectionRow, removed: bool) -> None:
    """A removed row stays where it is, and later datasets leave it out. `collection` is locked."""
    if (row.removed_at is not None) != removed:
        row.removed_at = func.clock_timestamp() if removed else None
        session.flush()
        session.refresh(row)
        _announce(session, collection)


def freeze(session: Session, project: Project, collection: Collection, name: str | None, actor: str) -> Dataset:
    """A dataset of the rows that are there now; `collection` is locked.

    Raises `EmptySelection`, `NameTaken`, `BadInput` (`invalid_name`), `StorageQuotaReached`.
    """
    refuse_beyond_storage(session, project)
    if not count_rows(session, collection):
        raise EmptySelection(f"collection {collection.name!r} has no rows", hint="Add one first.")
    with scratch.folder("collection") as folder:
        path = folder / "rows.jsonl"
        _write(session, collection, path)
        dataset = service.register_rows(
            session,
            project,
            name=name or _version_name(session, project, collection),
            kind=cast(SampleKind, collection.kind),
            path=path,
            run_id=None,
            origin={
                "type": "collection",
                "collection": collection.name,
                "collection_id": str(collection.id),
                "actor": actor,
            },
        )
    session.add(CollectionDataset(dataset_id=dataset.id, collection_id=collection.id))
    session.execute(
        update(CollectionRow)
        .where(CollectionRow.collection_id == collection.id, CollectionRow.removed_at.is_(None))
        .values(dataset_id=dataset.id)
    )
    session.refresh(dataset)
    _announce(session, collection)
    return dataset


def count_rows(session: Session, collection: Collection) -> int:
    """The number of its rows without removed ones."""
    present = CollectionRow.collection_id == collection.id, CollectionRow.removed_at.is_(None)
    return session.scalar(select(func.count()).select_from(CollectionRow).where(*present)) or 0


def collections_out(session: Session, collections: list[Collection]) -> list[CollectionOut]:
    """The collections with their counts and datasets, in three queries however many they are."""
    ids = [collection.id for collection in collections]
    counts = {
        row[0]: (row[1], row[2])
        for row in session.execute(
            select(CollectionRow.collection_id, func.count(), func.count(CollectionRow.dataset_id))
            .where(CollectionRow.collection_id.in_(ids), CollectionRow.removed_at.is_(None))
            .group_by(CollectionRow.collection_id)
        )
    }
    datasets: dict[uuid.UUID, list[FrozenDataset]] = {}
    made = select(CollectionDataset.collection_id, Dataset).join(Dataset, Dataset.id == CollectionDataset.dataset_id)
    for id_, dataset in session.execute(
        made.where(CollectionDataset.collection_id.in_(ids)).order_by(Dataset.id.desc())
    ):
        frozen = FrozenDataset(id=dataset.id, name=dataset.name, rows=dataset.rows, created_at=dataset.created_at)
        datasets.setdefault(id_, []).append(frozen)
    return [
        CollectionOut.model_validate(
            {
                "id": collection.id,
                "name": collection.name,
                "kind": collection.kind,
                "rows": counts.get(collection.id, (0, 0))[0],
                "frozen_rows": counts.get(collection.id, (0, 0))[1],
                "datasets": datasets.get(collection.id, []),
                "created_by": collection.created_by,
                "created_at": collection.created_at,
            }
        )
        for collection in collections
    ]


def _checked(collection: Collection, sample: dict[str, Any], provenance: dict[str, Any] | None) -> dict[str, Any]:
    """The sample as it is stored. Freezing must never meet a row that no dataset can hold."""
    try:
        fields = sample_fields(SAMPLE_CLASSES[cast(SampleKind, collection.kind)].model_validate(sample))
    except ValidationError as error:
        raise _bad("sample", f"is not a valid {collection.kind} sample: {sample_problems(error)}") from error
    beside = encode_extra({"provenance": provenance})
    if isinstance(beside, Problem):
        raise _bad("provenance", "cannot be stored: " + beside.reason)
    if len(canonical_json(fields)) + len(beside or "") * 2 > Limits().line // 2:
        raise _bad("sample", "is too large")
    return fields


def _bad(place: str, reason: str) -> BadRow:
    return BadRow(f"`{place}` {reason}", errors=[ErrorLocation(location=place, message=reason)])


def _write(session: Session, collection: Collection, path: Path) -> None:
    """The rows as the file that a stage would leave: fields that the kind lacks are kept with the sample."""
    rows = session.execute(
        select(CollectionRow.sample, CollectionRow.provenance)
        .where(CollectionRow.collection_id == collection.id, CollectionRow.removed_at.is_(None))
        .order_by(CollectionRow.place),
        execution_options={"yield_per": _AT_ONCE},
    )
    with create_file(path, "the rows of the collection") as file:
        for sample, provenance in rows:
            beside = {} if provenance is None else {"provenance": provenance}
            file.write(orjson.dumps(sample | beside) + b"\n")


def _version_name(session: Session, project: Project, collection: Collection) -> str:
    """`COLLECTION-vN`, N counting its datasets and passing over names that are taken."""
    versions = select(func.count()).select_from(CollectionDataset)
    number = session.scalar(versions.where(CollectionDataset.collection_id == collection.id)) or 0
    base = f"{collection.name[:118]}-v"
    taken = names_like(session, Dataset.name, base, Dataset.project_id == project.id)
    return next(name for k in count(number + 1) if (name := f"{base}{k}") not in taken)


def _announce(session: Session, collection: Collection) -> None:
    """Late in a transaction: it locks the project's event stream until the commit."""
    payload = {"id": str(collection.id), "name": collection.name, "rows": count_rows(session, collection)}
    emit(session, collection.project_id, "collection.changed", payload)
