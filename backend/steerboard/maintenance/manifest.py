"""What a backup consists of. Below the place that holds backups, a folder or an S3 prefix:

blobs/AB/SHA256              the content of artifacts and of files of imports, shared by all backups there
backups/NAME/tables/T.gz     the rows of table T: PostgreSQL's COPY text, compressed
backups/NAME/secret.key      the key of the sealed secrets, if that was asked for
backups/NAME/manifest.json   written last: a backup without it is none
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from steerboard.maintenance.errors import BadBackup
from steerboard.platform.storage.protocol import Storage

FOLDER, NAME = "backups/", "manifest.json"


# What becomes a part of a path or of a statement is nothing else.
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
SqlName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")]


class TableFile(BaseModel):
    """`sha256` and `size` are those of the compressed file."""

    name: SqlName
    columns: list[SqlName]
    rows: int
    sha256: Sha256
    size: int


class Blob(BaseModel):
    sha256: Sha256
    size: int


class ImportFile(Blob):
    """`name` below the store's `imports/`."""

    name: str


class BackupManifest(BaseModel):
    """`lost`: blobs that the store had lost already, or holds damaged. `secrets`: how many values are sealed."""

    format: Literal[1] = 1
    name: str
    created_at: str
    version: str
    revision: str
    tables: list[TableFile]
    sequences: dict[SqlName, int]
    blobs: list[Blob]
    imports: list[ImportFile]
    lost: list[str]
    secrets: int
    key_sha256: str | None


def dump(manifest: BackupManifest) -> bytes:
    return written(manifest.model_dump(mode="json"))


def written(body: object) -> bytes:
    """The only spelling in which a manifest is believed."""
    return json.dumps({"sha256": _hash(body), "backup": body}, indent=1).encode()


def newest(place: Storage) -> str:
    """The name of the newest complete backup. Raises `BadBackup` when there is none."""
    for name in sorted(place.folders(FOLDER), reverse=True):
        if place.size(f"{FOLDER}{name}/{NAME}") is not None:
            return name
    raise BadBackup(f"there is no complete backup at {place.url}", hint="Create one: steerboard backup DEST")


def load(place: Storage, name: str) -> BackupManifest:
    """Raises `BadBackup`."""
    try:
        with place.open(f"{FOLDER}{name}/{NAME}") as file:
            content = file.read()
        document = json.loads(content)
    except FileNotFoundError:
        raise BadBackup(f"there is no complete backup {name!r} at {place.url}") from None
    except (ValueError, RecursionError):
        raise BadBackup(f"the manifest of backup {name} is damaged") from None
    if not isinstance(document, dict) or written(document.get("backup")) != content:
        raise BadBackup(f"the manifest of backup {name} is damaged")
    try:
        backup = BackupManifest.model_validate(document["backup"])
    except ValidationError:
        raise BadBackup(
            f"backup {name} was made by another version", hint="Restore it with the Steerboard that made it, or newer."
        ) from None
    if backup.name != name or len({table.name for table in backup.tables}) < len(backup.tables):
        raise BadBackup(f"the manifest of backup {name} belongs to another backup")
    return backup


def _hash(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
