"""Uploads of model folders over HTTP: what it holds is announced, then each file comes in a request of its own."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.imports.uploads import Form, Write, form_body, uploaded
from steerboard.platform.http.errors import InvalidRequest, problems
from steerboard.registry.schemas import ModelUploadCreate, ModelUploadFile, ModelUploadOut
from steerboard.registry.uploads import service as uploads

router = Router(prefix="/model-uploads", tags=["models"])

Read = Annotated[Access, Depends(AccessTo("read"))]


@router.post("", status_code=201, responses=problems(413))
def create_model_upload(body: ModelUploadCreate, request: Request, session: Db, access: Write) -> ModelUploadOut:
    """Announce a model folder. Files that the project already has need not be sent: `missing` lists the others."""
    most = request.app.state.settings.max_upload_mb << 20
    upload = uploads.begin(session, access.project, body, access.actor, most)
    audit(session, access, "model.upload", upload.name, {"hash": upload.hash, "files": len(upload.files)})
    return uploads.upload_out(upload)


@router.get("/{hash}", responses=problems(404))
def get_model_upload(hash: str, session: Db, access: Read) -> ModelUploadOut:
    """The files that are still missing. A complete upload is the base model `source`."""
    return uploads.upload_out(uploads.get_upload(session, access.project, hash))


@router.post(
    "/{hash}/files/{path:path}",
    responses=problems(404, 413),
    openapi_extra=form_body(ModelUploadFile, file_needed=True),
)
def upload_model_file(hash: str, path: str, request: Request, session: Db, access: Write, form: Form) -> ModelUploadOut:
    """Upload one file of an announced folder; it must be what was announced."""
    source = uploaded(form)
    if source is None:
        raise InvalidRequest("the form has no file", hint="Send it as `file`.")
    store = request.app.state.store
    return uploads.upload_out(uploads.receive(session, store, access.project, hash, path, source.open()))
