"""Files that come in parts, so that a broken connection costs one part and not the file.

An upload is announced by its size and SHA-256: announced again by the same caller, it continues. Nothing here commits.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts.storage_quota import refuse_beyond_storage
from steerboard.accounts.tables import Project
from steerboard.datasets.errors import UploadDiffers, UploadIncomplete
from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.schemas import UploadCreate, UploadOut
from steerboard.datasets.imports.tables import ImportUpload
from steerboard.platform.http.errors import NotFound, TooLarge
from steerboard.platform.names import find
from steerboard_files.records import Source

PART_SIZE = 8 << 20
_CHUNK = 1 << 20


def announce(session: Session, project: Project, given: UploadCreate, identity: str, most_bytes: int) -> ImportUpload:
    """The caller's upload of this file, new or begun. Raises `TooLarge`, `StorageQuotaReached` for a new one."""
    if given.size > most_bytes:
        raise TooLarge(f"the file has {given.size:,} bytes; at most {most_bytes:,} are taken")
    row = {"project_id": project.id, "created_by": identity, **given.model_dump()}
    if session.scalar(select(ImportUpload.id).filter_by(**row | {"file_name": ImportUpload.file_name})) is None:
        refuse_beyond_storage(session, project, given.size)
    statement = insert(ImportUpload).values(**row)
    begun = statement.on_conflict_do_update(
        index_elements=[
            ImportUpload.project_id,
            ImportUpload.created_by,
            ImportUpload.sha256,
            ImportUpload.size,
        ],
        set_={"file_name": given.file_name},
    )
    return session.scalars(begun.returning(ImportUpload), execution_options={"populate_existing": True}).one()


def get_upload(session: Session, project: Project, ref: str, identity: str, *, lock: bool = False) -> ImportUpload:
    """The upload by id. Raises `NotFound`, also for another project's and another caller's."""
    query = select(ImportUpload).where(ImportUpload.project_id == project.id, ImportUpload.created_by == identity)
    upload = find(session, query.with_for_update() if lock else query, ImportUpload.id, None, ref)
    if upload is None:
        raise NotFound(f"there is no upload {ref!r}", hint="Announce the file again; it may have been imported.")
    return upload


def receive(files: ImportFiles, upload: ImportUpload, number: int, content: IO[bytes]) -> None:
    """Store one part. Raises `NotFound`, `UploadDiffers`, `NoSpaceLeft`."""
    if number >= _parts_of(upload):
        raise NotFound(f"the file has {_parts_of(upload)} parts, numbered from 0; there is no part {number}")
    size, wanted = content.seek(0, os.SEEK_END), _size_of(upload, number)
    if size != wanted:
        raise UploadDiffers(
            f"part {number} has {size:,} bytes instead of {wanted:,}",
            hint=f"Each part has {PART_SIZE:,} bytes; the last one has the rest.",
        )
    content.seek(0)
    files.put(upload.id, _name(number), content)


@contextmanager
def whole(files: ImportFiles, upload: ImportUpload) -> Iterator[Source]:
    """The file, while the context is open. Raises `UploadIncomplete` and `UploadDiffers`, after which all parts count
    as missing."""
    missing = _missing(files, upload)
    if missing:
        raise UploadIncomplete(
            f"{len(missing)} of {_parts_of(upload)} parts have not come, the first of them part {missing[0]}",
            hint="Send the missing parts, then try again.",
        )
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as file:
        for number in range(_parts_of(upload)):
            with files.open(upload.id, _name(number)) as part:
                while chunk := part.read(_CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
        if digest.hexdigest() != upload.sha256:
            files.remove(upload.id)
            raise UploadDiffers(
                f"{upload.file_name} differs from the announced content", hint="Send all of its parts again."
            )
        file.seek(0)
        yield Source(upload.file_name, lambda: file)


def upload_out(files: ImportFiles, upload: ImportUpload) -> UploadOut:
    return UploadOut(
        id=upload.id,
        file_name=upload.file_name,
        size=upload.size,
        part_size=PART_SIZE,
        missing=_missing(files, upload),
    )


def _missing(files: ImportFiles, upload: ImportUpload) -> list[int]:
    return [number for number in range(_parts_of(upload)) if not files.exists(upload.id, _name(number))]


def _parts_of(upload: ImportUpload) -> int:
    return -(-upload.size // PART_SIZE)


def _size_of(upload: ImportUpload, number: int) -> int:
    return min(PART_SIZE, upload.size - number * PART_SIZE)


def _name(number: int) -> str:
    return f"part-{number}"
