"""`steerboard backup`: the database in one snapshot, and every file that the snapshot refers to.

The platform may run meanwhile. A backup that does not come to its end leaves no manifest, and so is none; what it has
copied already serves the next one. Rows are read by COPY, since pg_dump has to be as new as the server and is in no
image of ours (docs/decisions/0013).
"""

from __future__ import annotations

import datetime as dt
import io
import secrets as random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from steerboard import __version__
from steerboard.maintenance import database_catalogue, key_rotation, manifest
from steerboard.maintenance.errors import BadBackup
from steerboard.maintenance.manifest import BackupManifest, Blob, ImportFile, TableFile
from steerboard.maintenance.streams import CompressedRows, hash_of
from steerboard.platform import migrations
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.storage import store_lock
from steerboard.platform.storage.artifacts import IMPORTS, ArtifactStore, CorruptArtifact
from steerboard.platform.storage.protocol import Storage

KEY_NAME = "secret.key"
_STALE = dt.timedelta(days=1)
_BLOBS_OF_SNAPSHOT = text(
    "SELECT DISTINCT file->>'sha256' AS sha256, (file->>'size')::bigint AS size"
    " FROM artifacts, jsonb_array_elements(manifest->'files') AS file ORDER BY 1"
)
# Files that are still to be read, or that a person may still download.
_IMPORTS_OF_SNAPSHOT = text("SELECT id FROM imports WHERE NOT files_gone OR bad_file IS NOT NULL ORDER BY id")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Backup:
    """`copied`: bytes of artifacts that were not at the destination yet."""

    manifest: BackupManifest
    copied: int


def back_up(
    engine: Engine,
    store: ArtifactStore,
    dest: Storage,
    *,
    keys: Secrets | None,
    verify: bool,
    say: Say = lambda _: None,
) -> Backup:
    """Raises `BadBackup` for a database that was never migrated, or a destination that is the artifact store itself,
    and what the two stores raise.

    `keys`: of the sealed secrets, to be stored with what they open. `verify`: read again what earlier backups have
    copied, instead of believing its size.
    """
    if dest.url == store.storage.url:
        raise BadBackup(
            "the destination is the artifact store itself, whose files may be collected",
            hint="Name another folder or prefix, preferably on another disk or account.",
        )
    name = f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S.%fZ}-{random.token_hex(3)}"
    _forget_unfinished(dest)
    with engine.connect() as lock_holder:
        store_lock.share_store_until_closed(lock_holder)
        try:
            with _snapshot(engine, lock_holder) as connection:
                revision = migrations.current_revision(connection)
                if revision is None:
                    raise BadBackup("the database was never migrated: there is nothing to back up")
                tables = [
                    _table(connection, dest, name, *table) for table in database_catalogue.tables(connection).items()
                ]
                say(f"{len(tables)} tables, {sum(table.rows for table in tables):,} rows")
                blobs = [Blob(sha256=row.sha256, size=row.size) for row in connection.execute(_BLOBS_OF_SNAPSHOT)]
                has_imports = any(table.name == "imports" for table in tables)  # not in the first schemas
                imports = connection.execute(_IMPORTS_OF_SNAPSHOT).scalars().all() if has_imports else []
                sealed = key_rotation.count_sealed(connection)
                sequences = database_catalogue.sequences(connection)
                # A rotation writes its key before it seals with it, so these open all that the snapshot has.
                key = key_text(keys) if keys is not None else None
            copier = _Copier(store, ArtifactStore(dest.url, storage=dest), verify)
            for blob in blobs:
                copier.copy(blob)
            files = [file for id_ in imports for file in copier.copy_import(str(id_))]
            say(f"{len(blobs)} blobs of artifacts, {copier.copied >> 20} MB of them new")
        finally:
            lock_holder.invalidate()  # closes it, and the lock with it
    made = BackupManifest(
        name=name,
        created_at=dt.datetime.now(dt.UTC).isoformat(),
        version=__version__,
        revision=revision,
        tables=tables,
        sequences=sequences,
        blobs=[blob for blob in blobs if blob.sha256 not in copier.lost],
        imports=files,
        lost=sorted(copier.lost),
        secrets=sealed,
        key_sha256=_store_key(dest, name, key) if key is not None else None,
    )
    if any(dest.size(table_file(name, table.name)) != table.size for table in tables):
        raise BadBackup(
            "it took longer than a day, and another backup has removed it in the meantime",
            hint="Start again: artifacts that were already copied are not copied again.",
        )
    dest.put(f"{manifest.FOLDER}{name}/{manifest.NAME}", io.BytesIO(manifest.dump(made)))
    return Backup(made, copier.copied)


@contextmanager
def _snapshot(engine: Engine, lock_holder: Connection) -> Iterator[Connection]:
    """Everything that is read is of one moment. Only a migration waits for us, and we for it: a table that it
    rewrites would look empty to a snapshot from before."""
    with lock_holder.begin(), engine.connect() as connection:
        migrations.lock(lock_holder)
        connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with connection.begin():
            yield connection


def _table(connection: Connection, dest: Storage, backup: str, name: str, columns: list[str]) -> TableFile:
    listed = ", ".join(map(database_catalogue.quoted, columns))
    with database_catalogue.driver(connection).cursor() as cursor:
        statement = f"COPY {database_catalogue.quoted(name)} ({listed}) TO STDOUT"
        with cursor.copy(statement.encode()) as copy:
            rows = CompressedRows(copy)
            dest.put(table_file(backup, name), io.BufferedReader(rows, 1 << 20))
    return TableFile(name=name, columns=columns, rows=rows.rows, sha256=rows.sha256, size=rows.size)


def table_file(backup: str, name: str) -> str:
    return f"{manifest.FOLDER}{backup}/tables/{name}.gz"


class _Copier:
    """Copies from one store to another, each blob once. `lost`: those that the first one does not have whole."""

    def __init__(self, source: ArtifactStore, dest: ArtifactStore, verify: bool) -> None:
        self._source, self._dest, self._verify = source, dest, verify
        self.lost: set[str] = set()
        self.copied = 0

    def copy(self, blob: Blob) -> None:
        if self._has(blob):
            return
        try:
            with self._source.open(blob.sha256) as content:
                self._dest.put(blob.sha256, content)
        except CorruptArtifact:
            self.lost.add(blob.sha256)
        else:
            self.copied += blob.size

    def copy_import(self, id_: str) -> Iterator[ImportFile]:
        """Files of an import; one that was read to its end meanwhile has none any more, and needs none."""
        for stored in self._source.storage.files(f"{IMPORTS}{id_}/"):
            try:
                with self._source.storage.open(stored.name) as content:
                    sha256, size = hash_of(content)
                if not self._has(Blob(sha256=sha256, size=size)):
                    with self._source.storage.open(stored.name) as content:
                        self._dest.put(sha256, content)
                    self.copied += size
            except FileNotFoundError:
                continue
            yield ImportFile(name=stored.name.removeprefix(IMPORTS), sha256=sha256, size=size)

    def _has(self, blob: Blob) -> bool:
        if self._verify:
            return self._dest.is_intact(blob.sha256, blob.size)
        return self._dest.has_size(blob.sha256, blob.size)


def _store_key(dest: Storage, name: str, key: str) -> str:
    content = key.encode()
    dest.put(f"{manifest.FOLDER}{name}/{KEY_NAME}", io.BytesIO(content))
    return hash_of(io.BytesIO(content))[0]


def key_text(keys: Secrets) -> str:
    """What restores the keys in use: one a line, the one that seals first."""
    return "".join(f"{key}\n" for key in keys.known())


def _forget_unfinished(dest: Storage) -> None:
    """Removes what is left of backups that were cut off so long ago that no one can still be writing them."""
    before = dt.datetime.now(dt.UTC) - _STALE
    uploads = [*dest.unfinished("blobs/"), *dest.unfinished(manifest.FOLDER)]
    dest.remove_unfinished([upload for upload in uploads if upload.modified < before])
    for name in dest.folders(manifest.FOLDER):
        folder = f"{manifest.FOLDER}{name}/"
        if dest.size(folder + manifest.NAME) is None:
            newest = max((stored.modified for stored in dest.files(folder)), default=None)
            if newest is None or newest < before:
                dest.remove_folder(folder)
