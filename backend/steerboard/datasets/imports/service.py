"""The rules of imports in several steps. Callers own the transaction; nothing here commits."""

from __future__ import annotations

import re
import uuid
from typing import Any, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.storage_quota import refuse_beyond_storage
from steerboard.accounts.tables import Project
from steerboard.datasets.errors import ImportBusy, ImportEnded, ImportFileGone
from steerboard.datasets.hub import find_hub_files
from steerboard.datasets.imports.detection import Seen, applied, detected, look
from steerboard.datasets.imports.execution import claims
from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.kinds import KINDS
from steerboard.datasets.imports.schemas import ImportChange, ImportOptionsOut, ImportOut, ImportState
from steerboard.datasets.imports.sources import import_sources_of
from steerboard.datasets.imports.tables import WORKING, Import
from steerboard.datasets.lookup import check_free_name
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import new_id
from steerboard.platform.http.errors import NotFound
from steerboard.platform.leases import take_away
from steerboard.platform.names import check_name, find, free_name, names_like
from steerboard_files.errors import UnknownColumn
from steerboard_files.known import without_ending
from steerboard_files.records import Source
from steerboard_files.texts import storable

_MAX_NAME = 100
_MAX_LABEL = 255
# A change of these makes an earlier report wrong; `bad_rows` only decides what follows from it.
_DECISIVE = ("kind", "mapping", "clean", "min_margin")


def create_from_upload(
    session: Session, project: Project, files: ImportFiles, upload: Source, name: str | None, actor: str
) -> Import:
    """Look at the upload and store it. Raises the errors of unusable files, `StorageQuotaReached`; nothing is stored
    then."""
    refuse_beyond_storage(session, project)
    label = storable(upload.label)[:_MAX_LABEL]
    proposed = _name_for(session, project, name, label)
    # Without closing it: the upload is read again below, and belongs to its request.
    seen = look(Source(label, lambda: kept_open(upload)), ImportOptionsOut().options)
    id_ = new_id()
    content = upload.open()
    content.seek(0)
    size = files.put(id_, "0", content)
    try:
        return _add(session, project, id_, proposed, label, seen, [{"label": label, "size": size}], actor)
    except BaseException:
        files.remove(id_)
        raise


def create_from_hub(
    session: Session,
    project: Project,
    files: ImportFiles,
    hub: str,
    name: str | None,
    actor: str,
    max_bytes: int,
    token: str | None = None,
) -> Import:
    """List a hub dataset at its newest commit and fetch its first file. `token`: the project's own. Raises the errors
    of `find_hub_files`, `StorageQuotaReached`."""
    repository = find_hub_files(hub, max_bytes, token=token)
    refuse_beyond_storage(session, project, sum(size for _, size in repository.files))
    proposed = _name_for(session, project, name, repository.hub.repo)
    listed = [{"label": path, "size": size} for path, size in repository.files]
    id_ = new_id()
    try:
        with repository.fetch(repository.files[0][0]) as content:
            files.put(id_, "0", content)
        source = Source(repository.files[0][0], lambda: files.open(id_, "0"))
        seen = look(source, ImportOptionsOut().options)
        return _add(session, project, id_, proposed, repository.hub.repo, seen, listed, actor, hub=str(repository.hub))
    except BaseException:
        files.remove(id_)
        raise


def get_import(session: Session, project: Project, ref: str, *, lock: bool = False) -> Import:
    """The import by id. Raises `NotFound`, also for another project's."""
    query = select(Import).where(Import.project_id == project.id)
    row = find(session, query.with_for_update() if lock else query, Import.id, None, ref)
    if row is None:
        raise NotFound(f"there is no import {ref!r}", hint="It may have been deleted.")
    return row


def change(session: Session, project: Project, files: ImportFiles, row: Import, changes: ImportChange) -> None:
    """What was sent. Options that do not fit the columns are kept, with the problem.

    Raises `ImportBusy`, `ImportEnded`, `NameTaken`, `BadInput` (`invalid_name`).
    """
    _check_editable(row)
    sent = {name: getattr(changes, name) for name in changes.model_fields_set}
    new_name = sent.pop("name", None)
    if new_name is not None and new_name != row.name:
        row.name = check_free_name(session, project, new_name)
    for name in ("bad_rows", "clean", "mapping"):
        if sent.get(name, ...) is None:  # null asks for the default again
            sent[name] = ImportOptionsOut.model_fields[name].default
    before = row.options
    row.options = {**before, **sent}
    options = ImportOptionsOut.model_validate(row.options)
    if any(row.options[name] != before.get(name) for name in _DECISIVE):
        row.report, row.bad_file = None, None
    row.effective, row.problem = applied(_look_again(files, row), options.options)
    row.state = "validated" if row.report and row.problem is None else "draft"
    row.progress = None
    session.flush()


def validate(session: Session, files: ImportFiles, row: Import, actor: str) -> None:
    """Have the whole file read and judged. Raises `ImportBusy`, `ImportEnded`, `UnknownColumn`."""
    _begin(session, files, row, "validating", actor)
    row.report, row.bad_file = None, None
    session.flush()


def start(session: Session, project: Project, files: ImportFiles, row: Import, actor: str) -> None:
    """Have the dataset made. Raises `ImportBusy`, `ImportEnded`, `UnknownColumn`, `NameTaken`,
    `StorageQuotaReached`."""
    _check_editable(row)
    refuse_beyond_storage(session, project)
    check_free_name(session, project, row.name)
    _begin(session, files, row, "importing", actor)


def cancel(session: Session, row: Import) -> None:
    """Stop the work immediately: its process loses the lease. A validation leaves a draft behind.

    Raises `ImportEnded` when nothing is at work.
    """
    if row.state not in WORKING:
        raise ImportEnded(
            f"nothing is in progress; the import is {row.state}", hint="Only an import in progress can be cancelled."
        )
    claims.end(session, row, "draft" if row.state == "validating" else "cancelled", progress=None)


def import_out(row: Import) -> ImportOut:
    return ImportOut(
        id=row.id,
        name=row.name,
        file_name=row.file_name,
        size=row.size,
        format=row.format,
        hub=row.hub,
        state=cast(ImportState, row.state),
        columns=cast(Any, row.columns),
        kinds=KINDS,
        options=ImportOptionsOut.model_validate(row.options),
        detected=cast(Any, row.detected),
        effective=cast(Any, row.effective),
        problem=cast(Any, row.problem),
        progress=cast(Any, row.progress),
        report=cast(Any, row.report),
        dataset_id=row.dataset_id,
        file_gone=row.files_gone,
        created_by=row.created_by,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _add(
    session: Session,
    project: Project,
    id_: uuid.UUID,
    name: str,
    label: str,
    seen: Seen,
    files: list[dict[str, Any]],
    actor: str,
    hub: str | None = None,
) -> Import:
    facts = detected(seen)
    effective, problem = applied(seen, ImportOptionsOut().options)
    row = Import(
        id=id_,
        project_id=project.id,
        name=name,
        file_name=label,
        hub=hub,
        files=files,
        files_gone=False,
        size=sum(file["size"] for file in files),
        format=seen.format,
        state="draft",
        columns=seen.described(),
        options=ImportOptionsOut().model_dump(),
        detected=facts,
        effective=effective,
        problem=problem,
        attempt=0,
        created_by=actor,
    )
    session.add(row)
    session.flush()
    return row


def _begin(session: Session, files: ImportFiles, row: Import, state: str, actor: str) -> None:
    _check_editable(row)
    options = ImportOptionsOut.model_validate(row.options).options
    row.effective, row.problem = applied(_look_again(files, row), options)
    if row.problem is not None:
        raise UnknownColumn(row.problem["detail"], hint=row.problem["hint"])
    row.state = state
    row.attempt = 0
    take_away(row)
    row.progress = {"read": 0, "bytes": 0, "total_bytes": row.size, "rows": 0}
    row.started_by = actor
    session.flush()


def _check_editable(row: Import) -> None:
    if row.state in WORKING:
        raise ImportBusy(f"the import is {row.state}", hint="Wait until it ends, or cancel it first.")
    if row.state == "succeeded":
        raise ImportEnded("the import has made its dataset", hint="Upload the file again for another dataset.")
    if row.files_gone:
        raise ImportFileGone("the file of this import is no longer stored", hint="Upload it again as a new import.")


def _look_again(files: ImportFiles, row: Import) -> Seen:
    return look(import_sources_of(files, row)[0], ImportOptionsOut().options)


def _name_for(session: Session, project: Project, given: str | None, label: str) -> str:
    """The name that was given, or a free one like that of the file."""
    if given is not None:
        return check_free_name(session, project, check_name(given))
    stem = (
        re.sub(r"[^A-Za-z0-9._-]+", "-", without_ending(label.rsplit("/", 1)[-1])).strip("-._")[:_MAX_NAME] or "dataset"
    )
    taken = names_like(session, Dataset.name, stem, Dataset.project_id == project.id)
    return free_name(stem, taken | names_like(session, Import.name, stem, Import.project_id == project.id))


def kept_open(upload: Source) -> Any:
    """The upload's stream from its start, which `close` leaves open."""
    stream = upload.open()
    stream.seek(0)
    return _Borrowed(stream)


class _Borrowed:
    """A stream that belongs to someone else."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        pass
