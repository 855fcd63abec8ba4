"""A model with its history over HTTP: where it came from, and what evaluations and benchmarks found about it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from steerboard.accounts.access import Access, AccessTo, Db, let_go
from steerboard.accounts.http.routes import Router, UnkeptRoute
from steerboard.insights import model_fit
from steerboard.insights.model_evaluations import entered_evaluations, evaluations_of
from steerboard.insights.schemas import FitAsked, ModelFit
from steerboard.platform.http.errors import problems
from steerboard.registry import service
from steerboard.registry.api import model_out
from steerboard.registry.schemas import Lineage, ModelDetail, ModelEvaluationOut, ModelFile
from steerboard.runs.results.academic import academic_of
from steerboard.runs.results.benchmarks import benchmarks_of
from steerboard.runs.results.lineage import lineage
from steerboard_contracts.report.academic import AcademicRow
from steerboard_contracts.report.benchmark import FinishedBenchmark

router = Router(prefix="/models", tags=["models"])
_live = Router(route_class=UnkeptRoute)

Read = Annotated[Access, Depends(AccessTo("read"))]
# It asks the hub with the token of the server.
Runner = Annotated[Access, Depends(AccessTo("run"))]


@_live.post("/fit", responses=problems())
def check_fit(body: FitAsked, session: Db, access: Runner) -> ModelFit:
    """What a model weighs and has, and what it needs on each worker, before it is imported. Asks the hub by name; no
    weights are read."""
    workers = model_fit.living_workers(session)
    let_go(session)
    return model_fit.fit(model_fit.looked_up(body), workers)


@router.get("/{model}", responses=problems(404))
def get_model(session: Db, access: Read, model: str) -> ModelDetail:
    """By id, name, `<pipeline>.<stage>`, `@production` or `@production-reward`, with its files."""
    found = service.get_model(session, access.project, model)
    manifest = service.manifest_of(session, found)
    files = [ModelFile.model_validate(file) for file in manifest.files]
    return ModelDetail(
        **model_out(found, manifest.size).model_dump(), files=files, in_evaluations=entered_evaluations(session, found)
    )


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


@router.get("/{model}/academic", responses=problems(404))
def list_model_academic(session: Db, access: Read, model: str) -> list[AcademicRow]:
    """The newest result of each academic benchmark of the model, and of others of the same content, with differences to
    its nearest models of the roles base and sft by item."""
    return academic_of(session, service.get_model(session, access.project, model))


router.include_router(_live)
