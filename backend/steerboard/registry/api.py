"""Models over HTTP, below `/api/v1/projects/{project}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.platform.access import Access, AccessTo, Db, audit
from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.errors import NotFound, problems
from steerboard.platform.paging import Page, paginate
from steerboard.registry import endpoints_api, promotions_api, service
from steerboard.registry.benchmarks import benchmarks_of
from steerboard.registry.evaluations import entered_evaluations, evaluations_of
from steerboard.registry.lineage import lineage
from steerboard.registry.schemas import Lineage, ModelDetail, ModelEvaluationOut, ModelFile, ModelOut, ModelStage
from steerboard.registry.tables import Artifact, Model
from steerboard_contracts.benchmark import FinishedBenchmark
from steerboard_contracts.models import ModelRole

router = APIRouter(prefix="/models", tags=["models"])
router.include_router(promotions_api.router)
project_router = endpoints_api.router

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


def models_out(session: Session, models: list[Model]) -> list[ModelOut]:
    hashes = {model.artifact_hash for model in models}
    sizes = {artifact.hash: artifact.size for artifact in _artifacts(session, hashes)}
    return [_out(model, sizes[model.artifact_hash]) for model in models]


def _artifacts(session: Session, hashes: set[str]) -> list[Artifact]:
    return list(session.scalars(select(Artifact).where(Artifact.hash.in_(hashes))))


def _out(model: Model, size: int) -> ModelOut:
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
            "info": model.info,
            "stage": model.stage,
            "created_at": model.created_at,
        }
    )


@router.get("")
def list_models(
    session: Db,
    access: Read,
    role: ModelRole | None = None,
    stage: ModelStage | None = None,
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Page[ModelOut]:
    """Newest first."""
    query = select(Model).where(Model.project_id == access.project.id)
    if role:
        query = query.where(Model.role == role)
    if stage:
        query = query.where(Model.stage == stage)
    if name:
        query = query.where(Model.name.icontains(name, autoescape=True))
    return paginate(
        session,
        query,
        Model.id,
        lambda model: models_out(session, [model])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: models_out(session, list(page)),
    )


@router.get("/{model}", responses=problems(404))
def get_model(session: Db, access: Read, model: str) -> ModelDetail:
    """By id, name, `<pipeline>.<stage>`, `@production` or `@production-reward`, with its files."""
    found = service.get_model(session, access.project, model)
    manifest = service.manifest_of(session, found)
    files = [ModelFile.model_validate(file) for file in manifest.files]
    return ModelDetail(
        **_out(found, manifest.size).model_dump(), files=files, in_evaluations=entered_evaluations(session, found)
    )


@router.delete("/{model}", status_code=204, responses=problems(404, 409))
def delete_model(session: Db, access: Write, model: str) -> None:
    """Only when nothing refers to it and it is in no stage."""
    found = service.get_model(session, access.project, model)
    service.delete_model(session, found)
    audit(session, access, "model.delete", found.name)


@router.get("/{model}/lineage", responses=problems(404))
def get_lineage(session: Db, access: Read, model: str) -> Lineage:
    """Parents, runs and data behind a model, and the models made from it."""
    return lineage(session, service.get_model(session, access.project, model))


@router.get("/{model}/evaluations", responses=problems(404))
def list_model_evaluations(
    session: Db, access: Read, model: str, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> list[ModelEvaluationOut]:
    """The newest finished evaluations that the model was an entrant of, each with its rows of the report."""
    return evaluations_of(session, service.get_model(session, access.project, model), limit)


@router.get("/{model}/benchmarks", responses=problems(404))
def list_model_benchmarks(
    session: Db, access: Read, model: str, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> list[FinishedBenchmark]:
    """The newest finished benchmarks of a reward model, and of others of the same content."""
    return benchmarks_of(session, service.get_model(session, access.project, model), limit)


@router.get("/{model}/files/{path:path}", response_class=StreamingResponse, responses=problems(404))
def download_model_file(request: Request, session: Db, access: Read, model: str, path: str) -> StreamingResponse:
    """One file, as it is stored. Its SHA-256 is the ETag; a damaged blob ends the answer early."""
    found = service.get_model(session, access.project, model)
    file = next((file for file in service.manifest_of(session, found).files if file["path"] == path), None)
    if file is None:
        raise NotFound(f"{found.name} has no file {path!r}", hint="Its files are listed at models/{model}.")
    store: ArtifactStore = request.app.state.store
    store.open(file["sha256"]).close()  # a missing blob is an error document, not a broken download

    def content() -> Iterator[bytes]:
        yield from store.read(file["sha256"])

    headers = {"Content-Length": str(file["size"]), "ETag": f'"{file["sha256"]}"'}
    return StreamingResponse(content(), media_type="application/octet-stream", headers=headers)
