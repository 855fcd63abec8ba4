"""Model folders that come from elsewhere, file by file, for `base` stages to import.

What a stage will refuse of a model is not looked at here. A file counts as received only after its content has come for
this very upload: that another project stored the same is neither revealed nor of use.
"""

from __future__ import annotations

import hashlib
from typing import IO

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts.storage_quota import refuse_beyond_storage
from steerboard.accounts.tables import Project
from steerboard.datasets.errors import UploadDiffers
from steerboard.platform.http.errors import NotFound, TooLarge
from steerboard.platform.storage import store_lock
from steerboard.platform.storage.artifacts import ArtifactStore, Manifest
from steerboard.platform.storage.protocol import CHUNK
from steerboard.registry.schemas import ModelUploadCreate, ModelUploadOut
from steerboard.registry.tables import Artifact, ModelUpload
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import UPLOAD

_AGAIN = "Upload it again: steerboard run ... --set base=FOLDER does."


def begin(session: Session, project: Project, given: ModelUploadCreate, actor: str, most_bytes: int) -> ModelUpload:
    """The upload of a folder with these files, new or known. Raises `TooLarge`, `StorageQuotaReached` for a new one."""
    manifest = Manifest.of([file.model_dump() for file in given.files])
    if manifest.size > most_bytes:
        raise TooLarge(f"the model has {manifest.size:,} bytes; at most {most_bytes:,} are taken")
    row = {"project_id": project.id, "hash": manifest.hash, "name": given.name, "created_by": actor}
    if session.scalar(select(ModelUpload.id).filter_by(project_id=project.id, hash=manifest.hash)) is None:
        refuse_beyond_storage(session, project, manifest.size)
    statement = insert(ModelUpload).values(**row, files=manifest.files, received=[])
    known = statement.on_conflict_do_update(
        index_elements=[ModelUpload.project_id, ModelUpload.hash], set_={"used_at": func.clock_timestamp()}
    )
    return session.scalars(known.returning(ModelUpload), execution_options={"populate_existing": True}).one()


def get_upload(session: Session, project: Project, hash_: str, *, lock: bool = False) -> ModelUpload:
    """Raises `NotFound`, also for another project's."""
    query = select(ModelUpload).where(ModelUpload.project_id == project.id, ModelUpload.hash == hash_)
    upload = session.scalar(query.with_for_update() if lock else query, execution_options={"populate_existing": True})
    if upload is None:
        raise NotFound(f"there is no uploaded model {hash_[:64]!r}", hint=_AGAIN)
    return upload


def receive(
    session: Session, store: ArtifactStore, project: Project, hash_: str, path: str, content: IO[bytes]
) -> ModelUpload:
    """Store one file of an upload; with the last one it is whole. Raises `NotFound`, `UploadDiffers`, `NoSpaceLeft`."""
    upload = get_upload(session, project, hash_)
    file = next((file for file in upload.files if file["path"] == path), None)
    if file is None:
        raise NotFound(f"the upload has no file {path[:200]!r}")
    digest = hashlib.sha256()
    while chunk := content.read(CHUNK):
        digest.update(chunk)
    if digest.hexdigest() != file["sha256"]:
        raise UploadDiffers(f"{path} differs from the announced content", hint="Start the upload again.")
    content.seek(0)
    store_lock.share_store(session)
    if not store.is_intact(file["sha256"], file["size"]):
        store.put(file["sha256"], content)
    upload = get_upload(session, project, hash_, lock=True)
    upload.received = sorted({*upload.received, path})
    _complete(session, store, upload)
    session.flush()
    return upload


def _complete(session: Session, store: ArtifactStore, upload: ModelUpload) -> None:
    """Files of an upload that no one finished for long may have been collected since; they count as missing again."""
    if len(upload.received) < len(upload.files):
        return
    there = [file for file in upload.files if store.has_size(file["sha256"], file["size"])]
    if len(there) < len(upload.files):
        upload.received = [file["path"] for file in there]
        return
    manifest = Manifest.of(upload.files)
    entry = insert(Artifact).values(hash=manifest.hash, size=manifest.size, manifest={"files": manifest.files})
    session.execute(entry.on_conflict_do_nothing())
    upload.artifact_hash = manifest.hash


def finished(session: Session, project: Project, source: str) -> Manifest:
    """The files of `upload:HASH`. Raises `BadInput` (`unknown_model`) unless all of them have come."""
    hash_ = source.removeprefix(UPLOAD)
    whole = ModelUpload.artifact_hash.is_not(None)
    upload = session.scalar(
        select(ModelUpload).where(ModelUpload.project_id == project.id, ModelUpload.hash == hash_, whole)
    )
    if upload is None:
        raise BadInput(f"there is no uploaded model {source!r} in the project", code="unknown_model", hint=_AGAIN)
    artifact = session.get_one(Artifact, upload.artifact_hash)
    return Manifest(hash=artifact.hash, size=artifact.size, files=artifact.manifest["files"])


def upload_out(upload: ModelUpload) -> ModelUploadOut:
    missing = [] if upload.artifact_hash else [f["path"] for f in upload.files if f["path"] not in upload.received]
    return ModelUploadOut(hash=upload.hash, name=upload.name, source=UPLOAD + upload.hash, missing=missing)
