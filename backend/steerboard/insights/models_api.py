"""A model with its history over HTTP: where it came from, and what evaluations and benchmarks found about it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request

from steerboard.accounts.access import Access, AccessTo, Db, let_go
from steerboard.accounts.http.routes import Router, UnkeptRoute
from steerboard.accounts.hub_tokens import hub_token_of
from steerboard.datasets.lookup import get_dataset
from steerboard.insights import model_fit
from steerboard.insights.model_evaluations import entered_evaluations, evaluations_of
from steerboard.insights.schemas import FitRequest, ModelFit
from steerboard.platform.http.errors import problems
from steerboard.registry import service
from steerboard.registry.api import model_out, models_out
from steerboard.registry.schemas import Lineage, ModelDetail, ModelEvaluationOut, ModelFile, ModelOut
from steerboard.runs.pipelines.service import get_pipeline
from steerboard.runs.references import models_of_pipeline
from steerboard.runs.results.academic import academic_of
from steerboard.runs.results.benchmarks import benchmarks_of
from steerboard.runs.results.lineage import lineage
from steerboard.runs.results.paired_benchmarks import paired_benchmarks
from steerboard_contracts.report.academic import AcademicRow
from steerboard_contracts.report.benchmark import FinishedBenchmark, PairedBenchmark

router = Router(prefix="/models", tags=["models"])
pipeline_router = Router(prefix="/pipelines/{pipeline}/models", tags=["pipelines"])
_live = Router(route_class=UnkeptRoute)

Read = Annotated[Access, Depends(AccessTo("read"))]
# It asks the hub with the token of the project or the server.
Runner = Annotated[Access, Depends(AccessTo("run"))]


@_live.post("/fit", responses=problems())
def check_fit(request: Request, body: FitRequest, session: Db, access: Runner) -> ModelFit:
    """A model's size and properties, and what it needs on each worker, before it is imported. A hub model is looked up
    by name; no weights are read."""
    workers = model_fit.living_workers(session)
    token = hub_token_of(session, request.app.state.secrets, access.project.id)
    let_go(session)
    return model_fit.fit(model_fit.looked_up(body, token), workers)


@router.get("/{model}", responses=problems(404))
def get_model(session: Db, access: Read, model: str) -> ModelDetail:
    """A model by id, name, `<pipeline>.<stage>`, `@production` or `@production-reward`, with its files."""
    row = service.get_model(session, access.project, model)
    manifest = service.manifest_of(session, row)
    files = [ModelFile.model_validate(file) for file in manifest.files]
    return ModelDetail(
        **model_out(row, manifest.size).model_dump(), files=files, in_evaluations=entered_evaluations(session, row)
    )


@pipeline_router.get("", responses=problems(404))
def list_pipeline_models(session: Db, access: Read, pipeline: str) -> list[ModelOut]:
    """Every model that the pipeline's runs made or reused, in the order in which they were made."""
    return models_out(session, models_of_pipeline(session, get_pipeline(session, access.project, pipeline)))


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


@router.get("/{model}/benchmarks/paired", responses=problems(404, 409))
def list_paired_benchmarks(
    session: Db,
    access: Read,
    model: str,
    other: Annotated[str, Query(description="The other reward model.")],
    dataset: Annotated[str | None, Query(description="Only the benchmark on this dataset.")] = None,
) -> list[PairedBenchmark]:
    """How far two reward models differ on the same items of each benchmark: `a` is the model, `b` the other one. Error
    codes of a 409: `no_benchmark`, `no_items_kept`, `other_benchmark_version`, `no_shared_items`."""
    a, b = (service.get_model(session, access.project, name) for name in (model, other))
    only = None if dataset is None else get_dataset(session, access.project, dataset)
    return paired_benchmarks(session, a, b, only)


@router.get("/{model}/academic", responses=problems(404))
def list_model_academic(session: Db, access: Read, model: str) -> list[AcademicRow]:
    """The newest result of each academic benchmark of the model, and of others of the same content, with differences to
    its nearest models of the roles base and sft by item."""
    return academic_of(session, service.get_model(session, access.project, model))


router.include_router(_live)
