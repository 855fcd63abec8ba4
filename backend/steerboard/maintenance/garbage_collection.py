"""`steerboard gc`: out of the artifact store goes what nothing refers to.

Why nothing that is needed can go:

- What refers to an artifact is asked of the database's own catalogue of foreign keys, so a new table counts
  immediately. A blob is needed while any artifact's manifest names it.
- Storing a folder first checks which blobs exist, and commits the reference later. It holds the store's lock,
  shared, from before the look until the commit (`platform.storage.store_lock`). A batch is collected with the lock
  alone: what others have committed is seen, because the references are asked again after the lock was given, and who
  comes later looks after the batch is gone, and stores what is missing again. So age is not what makes it safe.
- Age is for everyone else: a worker of an older version, which takes no lock, and one that has brought its files to
  the store and not yet begun the transaction; the latter would only have to bring them again.
- Unfinished uploads take no lock, so only age separates those left by a crash from active ones: at least a day.
- Killed between two batches, it has removed only unneeded blobs. Rows of artifacts precede their blobs, so no row
  ever names a blob that was collected.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection, Engine, text

from steerboard.maintenance import database_catalogue
from steerboard.maintenance.errors import StoreBusy
from steerboard.platform.storage import store_lock
from steerboard.platform.storage.artifacts import ArtifactStore

UPLOAD_AGE = dt.timedelta(days=1)
_BATCH = 500
_PATIENCE_SECONDS = 20.0
# Uploads of models that were imported since, or never.
_FORGOTTEN_UPLOADS = text(
    "DELETE FROM model_uploads WHERE used_at < :before AND NOT EXISTS (SELECT FROM runs"
    " WHERE runs.project_id = model_uploads.project_id AND runs.state IN ('pending', 'queued', 'running')"
    " AND runs.config->>'source' = 'upload:' || model_uploads.hash)"
)
_NEEDED = text(
    "SELECT DISTINCT file->>'sha256' FROM artifacts, jsonb_array_elements(manifest->'files') AS file"
    " WHERE hash != ALL(:but) AND (CAST(:among AS text[]) IS NULL OR file->>'sha256' = ANY(:among))"
)


@dataclass
class Collected:
    """What was removed, or would be. `bytes` of blobs."""

    artifacts: int = 0
    blobs: int = 0
    bytes: int = 0
    uploads: int = 0


def collect(
    engine: Engine,
    store: ArtifactStore,
    *,
    age: dt.timedelta,
    dry_run: bool = False,
    upload_age: dt.timedelta = UPLOAD_AGE,
    patience_seconds: float = _PATIENCE_SECONDS,
) -> Collected:
    """Remove artifacts and blobs that nothing refers to and that are older than `age`, and stale uploads.

    Raises `StoreBusy` when others, such as a backup, hold the store for longer than `patience_seconds`.
    """
    done = Collected()
    now = dt.datetime.now(dt.UTC)
    unused = _collect_artifacts(engine, now - age, dry_run, patience_seconds)
    done.artifacts = len(unused)
    with engine.connect() as connection:
        needed = set(connection.execute(_NEEDED, {"but": unused, "among": None}).scalars())
    old = (
        (sha256, stored.size)
        for sha256, stored in store.blobs()
        if sha256 not in needed and stored.modified < now - age
    )
    while sizes := dict(islice(old, _BATCH)):
        gone = list(sizes) if dry_run else _remove(engine, store, list(sizes), patience_seconds)
        done.blobs += len(gone)
        done.bytes += sum(sizes[sha256] for sha256 in gone)
    stale = [upload for upload in store.unfinished() if upload.modified < now - upload_age]
    if not dry_run:
        store.storage.remove_unfinished(stale)
    done.uploads = len(stale)
    return done


def _collect_artifacts(engine: Engine, before: dt.datetime, dry_run: bool, patience_seconds: float) -> list[str]:
    with engine.begin() as connection:
        if not dry_run:
            _own(connection, patience_seconds)
            connection.execute(_FORGOTTEN_UPLOADS, {"before": before})
        unused = " AND ".join(
            f"NOT EXISTS (SELECT FROM {table} WHERE {table}.{database_catalogue.quoted(column)} = artifacts.hash)"
            for table, column in database_catalogue.references_to(connection, "artifacts", "hash")
        )
        what = f"FROM artifacts WHERE created_at < :before AND {unused}"
        statement = f"SELECT hash {what}" if dry_run else f"DELETE {what} RETURNING hash"
        return list(connection.execute(text(statement), {"before": before}).scalars())


def _remove(engine: Engine, store: ArtifactStore, batch: list[str], patience_seconds: float) -> list[str]:
    with engine.begin() as connection:
        _own(connection, patience_seconds)
        needed = set(connection.execute(_NEEDED, {"but": [], "among": batch}).scalars())
        gone = [sha256 for sha256 in batch if sha256 not in needed]
        store.remove(gone)
        return gone


def _own(connection: Connection, patience_seconds: float) -> None:
    if not store_lock.own_store(connection, patience_seconds):
        raise StoreBusy(
            "a backup, or a run that stores its model, is using the artifact store",
            hint="Run `steerboard gc` again when it has ended.",
        )
