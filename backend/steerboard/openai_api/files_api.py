"""`/files` of OpenAI's API. Result files are made of a job's metrics when they are asked for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict
from sqlalchemy import select

from steerboard.accounts.access import Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.imports.uploads import Form, checked, form_body, uploaded
from steerboard.openai_api.dependencies import Read, Write
from steerboard.openai_api.files import service
from steerboard.openai_api.ids import FILE, RESULTS
from steerboard.openai_api.jobs import results
from steerboard.openai_api.lists import page_of
from steerboard.openai_api.tables import OpenAIFile
from steerboard.platform.http import downloads
from steerboard.platform.http.downloads import Download
from steerboard.platform.http.errors import InvalidRequest
from steerboard_contracts.errors import ErrorLocation

router = Router(prefix="/files")


class FileForm(BaseModel):
    """The form field besides the file."""

    model_config = ConfigDict(extra="forbid")

    purpose: str


@router.post("", openapi_extra=form_body(FileForm, file_needed=True))
def openai_create_file(request: Request, session: Db, access: Write, form: Form) -> dict[str, Any]:
    given, upload = checked(FileForm, form), uploaded(form)
    if upload is None:
        raise InvalidRequest(
            "the form has no file", errors=[ErrorLocation(location="file", message="is missing")], hint="Send `file`."
        )
    file = service.create(session, request.app.state.store, access.project, upload, given.purpose, access.actor)
    audit(session, access, "openai_file.create", file.name, {"id": str(file.id), "size": file.size})
    return service.files_out([file])[0]


@router.get("")
def openai_list_files(
    session: Db,
    access: Read,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: Literal["asc", "desc"] = "desc",
    purpose: str | None = None,
) -> dict[str, Any]:
    """Uploaded ones; the results of a job are in its `result_files`."""
    query = select(OpenAIFile).where(OpenAIFile.project_id == access.project.id)
    if purpose is not None:
        query = query.where(OpenAIFile.purpose == purpose)
    options: dict[str, Any] = {"after": after, "limit": limit, "newest_first": order == "desc"}
    return page_of(session, query, OpenAIFile.id, FILE, service.files_out, **options)


@router.get("/{file}")
def openai_get_file(session: Db, access: Read, file: str) -> dict[str, Any]:
    if file.startswith(RESULTS):
        return results.file_of(session, access.project, file)
    return service.files_out([service.get_file(session, access.project, file)])[0]


@router.get("/{file}/content", response_class=Download)
def openai_get_file_content(request: Request, session: Db, access: Read, file: str) -> Download:
    if file.startswith(RESULTS):
        run = results.run_of_results(session, access.project, file)
        return downloads.made(lambda out: results.write(session, run, out), results.name_of(run), "text/csv")
    row = service.get_file(session, access.project, file)
    content_file = service.open_content(session, request.app.state.store, row)
    return Download(content_file, row.name, "application/octet-stream")


@router.delete("/{file}")
def openai_delete_file(session: Db, access: Write, file: str) -> dict[str, Any]:
    """Datasets and models that were made of it stay."""
    row = service.get_file(session, access.project, file, lock=True)
    session.delete(row)
    audit(session, access, "openai_file.delete", row.name, {"id": str(row.id)})
    return {"id": file, "object": "file", "deleted": True}
