"""The import wizard over HTTP, below `/api/v1/projects/{project}/imports`."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import BackgroundTasks, Depends, Path, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.hub_tokens import hub_token_of
from steerboard.datasets.imports import parts, preview, service
from steerboard.datasets.imports.bad_rows import as_csv, as_json, bad_rows
from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.readable import FORMATS_OUT
from steerboard.datasets.imports.schemas import (
    ImportChange,
    ImportFormats,
    ImportOptionsOut,
    ImportOut,
    ImportPreview,
    UploadCreate,
    UploadOut,
    UploadPart,
)
from steerboard.datasets.imports.sources import import_sources_of
from steerboard.datasets.imports.tables import Import
from steerboard.datasets.imports.uploads import Form, Write, checked, form_body, uploaded
from steerboard.platform.http.errors import InvalidRequest, NotFound, problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/imports", tags=["imports"])

Read = Annotated[Access, Depends(AccessTo("read"))]


class NewImport(BaseModel):
    """The form fields besides the file. Without `name`, one is derived from the file's."""

    model_config = ConfigDict(extra="forbid")

    hub: str | None = Field(default=None, description="Instead of a file: org/name, org/name@revision:split.")
    upload: str | None = Field(default=None, description="Instead of a file: the id of an upload that came in parts.")
    name: str | None = None


def _files(request: Request) -> ImportFiles:
    return ImportFiles(request.app.state.settings.artifact_url)


Files = Annotated[ImportFiles, Depends(_files)]


def _most(request: Request) -> int:
    return int(request.app.state.settings.max_upload_mb) << 20


def _wake(request: Request) -> None:
    """Runs after the commit. Without a runner in this process, that of another one finds the work."""
    runner = getattr(request.app.state, "import_runner", None)
    if runner is not None:
        runner.wake()


@router.post(
    "",
    status_code=201,
    responses=problems(409, 413),
    openapi_extra=form_body(NewImport, file_needed=False),
)
def create_import(
    request: Request, session: Db, access: Write, form: Form, files: Files, afterwards: BackgroundTasks
) -> ImportOut:
    """Upload one file of a format that `imports/formats` lists, or name an upload in parts or a hub dataset. An
    unusable file is refused immediately."""
    given = checked(NewImport, form)
    file = uploaded(form)
    if sum(source is not None for source in (file, given.hub, given.upload)) != 1:
        raise InvalidRequest(
            "give one of a file, an upload and a hub name", hint="Send `file`, `upload` = ID or `hub` = org/name."
        )
    if given.hub is not None:
        token = hub_token_of(session, request.app.state.secrets, access.project.id)
        row = service.create_from_hub(
            session, access.project, files, given.hub, given.name, access.actor, _most(request), token
        )
    elif given.upload is not None:
        upload = parts.get_upload(session, access.project, given.upload, access.identity, lock=True)
        with parts.whole(files, upload) as source:
            row = service.create_from_upload(session, access.project, files, source, given.name, access.actor)
        session.delete(upload)
        afterwards.add_task(files.remove, upload.id)
    else:
        assert file is not None
        row = service.create_from_upload(session, access.project, files, file, given.name, access.actor)
    audit(session, access, "import.create", row.name, {"file": row.file_name, "size": row.size})
    return service.import_out(row)


@router.get("", responses=problems(404))
def list_imports(
    session: Db, access: Read, cursor: str | None = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> Page[ImportOut]:
    """Newest first, including finished ones."""
    query = select(Import).where(Import.project_id == access.project.id)
    return paginate(session, query, Import.id, service.import_out, cursor=cursor, limit=limit)


@router.get("/formats", responses=problems(404))
def list_formats(access: Read) -> ImportFormats:
    """The formats of files that can be imported, and the layouts of other tools that are recognised in them."""
    return FORMATS_OUT


@router.post("/uploads", status_code=201, responses=problems(413))
def announce_upload(body: UploadCreate, request: Request, session: Db, access: Write, files: Files) -> UploadOut:
    """Announce a file that comes in parts. Announced again, it continues: `missing` lists the parts to send. Unfinished
    uploads are kept for a day."""
    upload = parts.announce(session, access.project, body, access.identity, _most(request))
    audit(session, access, "import.upload", upload.file_name, {"size": upload.size, "sha256": upload.sha256})
    return parts.upload_out(files, upload)


@router.post(
    "/uploads/{upload}/parts/{number}",
    responses=problems(404, 413),
    openapi_extra=form_body(UploadPart, file_needed=True),
)
def upload_part(
    upload: str, number: Annotated[int, Path(ge=0)], session: Db, access: Write, form: Form, files: Files
) -> UploadOut:
    """Send one part of an announced file."""
    source = uploaded(form)
    if source is None:
        raise InvalidRequest("the form has no file", hint="Send it as `file`.")
    row = parts.get_upload(session, access.project, upload, access.identity)
    parts.receive(files, row, number, source.open())
    return parts.upload_out(files, row)


@router.get("/{import_id}", responses=problems(404))
def get_import(session: Db, access: Read, import_id: str) -> ImportOut:
    """The state and progress of an import."""
    return service.import_out(service.get_import(session, access.project, import_id))


@router.patch("/{import_id}", responses=problems(404, 409))
def change_import(session: Db, access: Write, import_id: str, body: ImportChange, files: Files) -> ImportOut:
    """Choose kind, columns and rules. Choices that do not fit are kept, and `problem` explains what is wrong."""
    row = service.get_import(session, access.project, import_id, lock=True)
    service.change(session, access.project, files, row, body)
    audit(session, access, "import.change", row.name, body.model_dump(exclude_unset=True))
    return service.import_out(row)


@router.delete("/{import_id}", status_code=204, responses=problems(404))
def delete_import(session: Db, access: Write, import_id: str, files: Files, afterwards: BackgroundTasks) -> None:
    """Delete an import and its file; work in progress stops. A dataset that it made is kept."""
    row = service.get_import(session, access.project, import_id, lock=True)
    session.delete(row)
    audit(session, access, "import.delete", row.name, {"file": row.file_name, "state": row.state})
    # After the commit; files that a crash leaves behind are swept.
    afterwards.add_task(files.remove, row.id)


@router.get("/{import_id}/preview", responses=problems(404, 409))
def preview_import(
    session: Db, access: Read, import_id: str, files: Files, limit: Annotated[int, Query(ge=1, le=200)] = 20
) -> ImportPreview:
    """The first rows under the current mapping. `unknown_column` where it does not fit."""
    row = service.get_import(session, access.project, import_id)
    source = import_sources_of(files, row)[0]
    return preview.preview(source, ImportOptionsOut.model_validate(row.options).options, limit)


@router.post("/{import_id}/validate", status_code=202, responses=problems(404, 409))
def validate_import(
    request: Request, session: Db, access: Write, import_id: str, files: Files, afterwards: BackgroundTasks
) -> ImportOut:
    """Validate the whole file in the background, by the rules of the import; only the report is stored."""
    row = service.get_import(session, access.project, import_id, lock=True)
    service.validate(session, files, row, access.actor)
    audit(session, access, "import.validate", row.name)
    afterwards.add_task(_wake, request)
    return service.import_out(row)


@router.get("/{import_id}/report", response_class=StreamingResponse, responses=problems(404, 409))
def download_import_report(
    session: Db, access: Read, import_id: str, files: Files, format: Literal["csv", "json"] = "csv"
) -> StreamingResponse:
    """All bad rows of the last validation or import: line, code, reason, file."""
    row = service.get_import(session, access.project, import_id)
    if row.report is None:
        raise NotFound("this import has no report", hint="Validate it first.")
    rows = bad_rows(files.open(row.id, row.bad_file) if row.bad_file else None)
    body, media = (as_csv(rows), "text/csv; charset=utf-8") if format == "csv" else (as_json(rows), "application/json")
    name = f'attachment; filename="{row.name}-bad-rows.{format}"'
    return StreamingResponse(body, media_type=media, headers={"Content-Disposition": name})


@router.post("/{import_id}/start", status_code=202, responses=problems(404, 409))
def start_import(
    request: Request, session: Db, access: Write, import_id: str, files: Files, afterwards: BackgroundTasks
) -> ImportOut:
    """Create the dataset in the background, whole or not at all."""
    row = service.get_import(session, access.project, import_id, lock=True)
    service.start(session, access.project, files, row, access.actor)
    audit(session, access, "import.start", row.name)
    afterwards.add_task(_wake, request)
    return service.import_out(row)


@router.post("/{import_id}/cancel", status_code=202, responses=problems(404, 409))
def cancel_import(session: Db, access: Write, import_id: str) -> ImportOut:
    """Cancel immediately. A cancelled validation leaves a draft; a cancelled import can be started again."""
    row = service.get_import(session, access.project, import_id, lock=True)
    service.cancel(session, row)
    audit(session, access, "import.cancel", row.name)
    return service.import_out(row)
