"""`steerboard restore`: a backup into an empty database, whole or not at all.

Everything is verified before anything is written. Files come first, where they hurt no one; then the database in one
transaction, which first makes the tables of the version that was backed up, and at the end those of this one.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from steerboard.maintenance import database_catalogue, manifest
from steerboard.maintenance.backup import KEY_NAME, table_file
from steerboard.maintenance.errors import BadBackup, NotEmpty
from steerboard.maintenance.manifest import BackupManifest, Blob, TableFile
from steerboard.maintenance.streams import hash_of, rows_of
from steerboard.platform import migrations
from steerboard.platform.row_copy import copy_into
from steerboard.platform.security.secrets import KEY_FILE, write_key_file
from steerboard.platform.storage.artifacts import IMPORTS, ArtifactStore, safe_member
from steerboard.platform.storage.disk import database_disk
from steerboard.platform.storage.protocol import Storage
from steerboard_contracts.files.disk import Disk

Say = Callable[[str], None]


def restore(
    engine: Engine,
    store: ArtifactStore,
    source: Storage,
    *,
    home: Path,
    name: str | None = None,
    say: Say = lambda _: None,
) -> BackupManifest:
    """`name`: which backup, the newest by default.

    Raises `BadBackup` when something of it is missing, damaged or too new, `CorruptArtifact` when a file of it would
    leave the store, `NotEmpty` when the database has tables, or the home another key, and what the stores raise.
    """
    backup = manifest.load(source, name or manifest.newest(source))
    if not migrations.knows(backup.revision):
        raise BadBackup(
            f"backup {backup.name} is of schema {backup.revision}, which this version does not know",
            hint="It was made by a newer Steerboard; restore it with that one.",
        )
    with engine.connect() as connection:
        _refuse_full(connection)
    blobs = ArtifactStore(source.url, storage=source)
    _verify(backup, source, blobs)
    key = _key(backup, source, home)
    say(f"backup {backup.name} of version {backup.version} is whole")
    for blob in backup.blobs:
        if not store.is_intact(blob.sha256, blob.size):
            with blobs.open(blob.sha256) as content:
                store.put(blob.sha256, content)
    for file in backup.imports:
        with blobs.open(file.sha256) as content:
            store.storage.put(f"{IMPORTS}{file.name}", content, file.sha256)
    if key is not None:
        write_key_file(home, key)
    with engine.begin() as connection:
        fill(connection, backup, source, database_disk(home))
        migrations.upgrade(connection, "head")
    say(f"{sum(table.rows for table in backup.tables):,} rows and {len(backup.blobs)} blobs are restored")
    return backup


def _refuse_full(connection: Connection) -> None:
    if migrations.current_revision(connection) is not None or database_catalogue.tables(connection):
        raise NotEmpty(
            "the database is not empty", hint="Restore into a new home (--home DIR), or into a new database."
        )


def _verify(backup: BackupManifest, source: Storage, blobs: ArtifactStore) -> None:
    for file in backup.imports:
        safe_member(file.name)
    folder = f"{manifest.FOLDER}{backup.name}/"
    known = {folder + manifest.NAME, *(table_file(backup.name, table.name) for table in backup.tables)}
    known |= {folder + KEY_NAME} if backup.key_sha256 is not None else set()
    others = {stored.name for stored in source.files(folder)} - known
    if others:
        raise BadBackup(
            f"{min(others)} is not part of the backup", hint="It was added later; restore another backup: --backup NAME"
        )
    for table in backup.tables:
        _expect(table, source, table_file(backup.name, table.name))
    for blob in {blob.sha256: blob for blob in [*backup.blobs, *backup.imports]}.values():
        _expect(blob, source, blobs.name_of(blob.sha256))


def _expect(what: Blob | TableFile, source: Storage, name: str) -> None:
    try:
        with source.open(name) as file:
            got = hash_of(file)
    except FileNotFoundError:
        raise BadBackup(f"{name} is missing from the backup", hint="Restore another one: --backup NAME") from None
    if got != (what.sha256, what.size):
        raise BadBackup(f"{name} of the backup is damaged", hint="Restore another one: --backup NAME")


def _key(backup: BackupManifest, source: Storage, home: Path) -> str | None:
    """The key file to write, if the backup has one and the home has none."""
    if backup.key_sha256 is None:
        return None
    try:
        with source.open(f"{manifest.FOLDER}{backup.name}/{KEY_NAME}") as file:
            content = file.read()
    except FileNotFoundError:
        content = b""
    if hash_of(io.BytesIO(content))[0] != backup.key_sha256:
        raise BadBackup("the key of the backup is missing or damaged", hint="Restore another one: --backup NAME")
    present = home / KEY_FILE
    if present.exists() and present.read_bytes() != content:
        raise NotEmpty(f"{present} holds a different key from the backup", hint="Move it away, or use a new home.")
    return content.decode()


def fill(connection: Connection, backup: BackupManifest, source: Storage, disk: Disk | None) -> None:
    """An empty database gets the schema and the rows of the backup, as they were when it was made."""
    migrations.lock(connection)
    _refuse_full(connection)
    migrations.upgrade(connection, backup.revision)
    made = database_catalogue.tables(connection)
    if {table.name: table.columns for table in backup.tables} != made:
        names = {table.name for table in backup.tables} ^ set(made)
        raise BadBackup(
            f"the tables of the backup are not those of schema {backup.revision}",
            hint=f"Other tables: {', '.join(sorted(names))}" if names else "Their columns differ.",
        )
    # References lead in every direction; they are checked at the end, all at once.
    references = database_catalogue.foreign_keys(connection)
    for key in references:
        connection.execute(text(f"ALTER TABLE {key.table} DROP CONSTRAINT {database_catalogue.quoted(key.name)}"))
    if made:  # a migration may put rows of its own there
        connection.execute(text(f"TRUNCATE {', '.join(map(database_catalogue.quoted, made))}"))
    for table in backup.tables:
        _copy(connection, table, source, table_file(backup.name, table.name), disk)
    for key in references:
        connection.execute(
            text(f"ALTER TABLE {key.table} ADD CONSTRAINT {database_catalogue.quoted(key.name)} {key.definition}")
        )
    for sequence, value in backup.sequences.items():
        connection.execute(text("SELECT setval(CAST(:name AS regclass), :value)"), {"name": sequence, "value": value})


def _copy(connection: Connection, table: TableFile, source: Storage, file_name: str, disk: Disk | None) -> None:
    columns = ", ".join(map(database_catalogue.quoted, table.columns))
    statement = f"COPY {database_catalogue.quoted(table.name)} ({columns}) FROM STDIN"
    with source.open(file_name) as file:
        with copy_into(database_catalogue.driver(connection), statement, disk) as copy:
            for piece in rows_of(file):
                copy.write(piece)
    if copy.rows != table.rows:
        raise BadBackup(f"{copy.rows} of the {table.rows} rows of {table.name} were restored")
