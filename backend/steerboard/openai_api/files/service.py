"""Files that jobs learn from: kept as they came, and imported as a dataset when a job first needs one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import IO, Any, BinaryIO, cast

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts.storage_quota import refuse_beyond_storage
from steerboard.accounts.tables import Project
from steerboard.datasets.imports.detection import look
from steerboard.datasets.imports.importer import ImportOptions
from steerboard.datasets.imports.service import kept_open
from steerboard.openai_api.errors import unknown, unsupported
from steerboard.openai_api.files.naming import PURPOSE, file_out
from steerboard.openai_api.ids import FILE, meant, shown
from steerboard.openai_api.tables import OpenAIFile
from steerboard.platform.storage import store_lock
from steerboard.platform.storage.artifacts import ArtifactStore, Manifest
from steerboard.registry.tables import Artifact
from steerboard_files.records import Source
from steerboard_files.texts import storable

_CONTENT = "content"
_MAX_NAME = 255
_CHUNK = 1 << 20


def create(
    session: Session, store: ArtifactStore, project: Project, upload: Source, purpose: str, actor: str
) -> OpenAIFile:
    """Raises `UnsupportedParameter`, and the errors of unusable files; nothing is stored then."""
    if purpose != PURPOSE:
        raise unsupported("purpose", f"is {purpose[:100]!r}; files are for `{PURPOSE}` here")
    look(Source(upload.label, lambda: kept_open(upload)), ImportOptions())
    content = upload.open()
    sha256, size = _hashed(content)
    refuse_beyond_storage(session, project, size)
    manifest = Manifest.of([{"path": _CONTENT, "sha256": sha256, "size": size}])
    # Until the commit no one collects what is put there.
    store_lock.share_store(session)
    content.seek(0)
    store.put(sha256, content)
    entry = insert(Artifact).values(hash=manifest.hash, size=size, manifest={"files": manifest.files})
    session.execute(entry.on_conflict_do_nothing())
    file = OpenAIFile(
        project_id=project.id,
        name=storable(upload.label)[:_MAX_NAME],
        purpose=purpose,
        size=size,
        artifact_hash=manifest.hash,
        created_by=actor,
    )
    session.add(file)
    session.flush()
    session.refresh(file)
    return file


def get_file(session: Session, project: Project, id_: str, *, lock: bool = False) -> OpenAIFile:
    """Raises `NotFound`, also for another project's."""
    file_id = meant(FILE, id_)
    query = select(OpenAIFile).where(OpenAIFile.project_id == project.id, OpenAIFile.id == file_id)
    file = session.scalar(query.with_for_update() if lock else query) if file_id else None
    if file is None:
        raise unknown("file", id_)
    return file


def open_content(session: Session, store: ArtifactStore, file: OpenAIFile) -> BinaryIO:
    """A seekable stream of what was uploaded."""
    (stored,) = session.get_one(Artifact, file.artifact_hash).manifest["files"]
    return cast(BinaryIO, store.storage.open(store.name_of(stored["sha256"])))


def files_out(files: Sequence[OpenAIFile]) -> list[dict[str, Any]]:
    return [
        file_out(shown(FILE, file.id), file.name, file.purpose, file.size, int(file.created_at.timestamp()))
        for file in files
    ]


def _hashed(content: IO[bytes]) -> tuple[str, int]:
    content.seek(0)
    digest, size = hashlib.sha256(), 0
    while chunk := content.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
