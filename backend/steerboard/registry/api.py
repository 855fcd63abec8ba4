"""Models over HTTP, below `/api/v1/projects/{project}`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.marks.listing import MarksFilter
from steerboard.platform.http.errors import NotFound, problems
from steerboard.platform.http.paging import Page, named, paginate
from steerboard.platform.http.stored_file import stored_file
from steerboard.registry import promotions_api, service
from steerboard.registry.endpoints import api as endpoints_api
from steerboard.registry.schemas import ModelOut, ModelStage
from steerboard.registry.tables import Artifact, Model
from steerboard.registry.uploads import api as uploads_api
from steerboard_contracts.metric_order import by_importance
from steerboard_contracts.models import ModelRole

router = Router(prefix="/models", tags=["models"])
router.include_router(promotions_api.router)
project_router = Router()
project_router.include_router(endpoints_api.router)
project_router.include_router(uploads_api.router)

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


def models_out(session: Session, models: list[Model]) -> list[ModelOut]:
    hashes = {model.artifact_hash for model in models}
    sizes = {artifact.hash: artifact.size for artifact in _artifacts(session, hashes)}
    return [model_out(model, sizes[model.artifact_hash]) for model in models]


def _artifacts(session: Session, hashes: set[str]) -> list[Artifact]:
    return list(session.scalars(select(Artifact).where(Artifact.hash.in_(hashes))))


def model_out(model: Model, size: int) -> ModelOut:
    return ModelOut.model_validate(
        {
            "id": model.id,
            "name": model.name,
            "role": model.role,
            "method": model.method,
            "content_hash": model.artifact_hash,
            "size": size,
            "parent_id": model.parent_id,
            "run_id": model.run_id,
            "info": {**model.info, "summary": by_importance(model.info.get("summary") or {})},
            "stage": model.stage,
            "created_at": model.created_at,
        }
    )


@router.get("")
def list_models(
    session: Db,
    access: Read,
    marks: Annotated[MarksFilter, Depends()],
    role: Annotated[list[ModelRole], Query()] = [],  # noqa: B006
    stage: ModelStage | None = None,
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Page[ModelOut]:
    """Newest first."""
    query = select(Model).where(Model.project_id == access.project.id)
    if role:
        query = query.where(Model.role.in_(role))
    if stage:
        query = query.where(Model.stage == stage)
    query = marks.of(named(query, Model, name), access, Model, "model")
    return paginate(
        session,
        query,
        Model.id,
        lambda model: models_out(session, [model])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: models_out(session, list(page)),
        searched=bool(marks.search or name),
    )


@router.delete("/{model}", status_code=204, responses=problems(404, 409))
def delete_model(session: Db, access: Write, model: str) -> None:
    """Delete a model that nothing refers to and that is in no stage."""
    row = service.get_model(session, access.project, model)
    service.delete_model(session, row)
    audit(session, access, "model.delete", row.name)


@router.get("/{model}/files/{path:path}", response_class=StreamingResponse, responses=problems(404))
def download_model_file(request: Request, session: Db, access: Read, model: str, path: str) -> StreamingResponse:
    """One file, as it is stored. Its SHA-256 is the ETag; a damaged blob ends the answer early."""
    row = service.get_model(session, access.project, model)
    file = next((file for file in service.manifest_of(session, row).files if file["path"] == path), None)
    if file is None:
        raise NotFound(f"{row.name} has no file {path!r}", hint="Its files are listed at models/{model}.")
    return stored_file(request.app.state.store, file)
