"""Recipes over HTTP: what ships, what a recipe would do, and starting one."""

from __future__ import annotations

import functools
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.model_folders import folders_for
from steerboard.accounts.http.routes import Router
from steerboard.platform.concurrency import has_left, in_pool
from steerboard.platform.http.errors import problems
from steerboard.recipes import row_checks, service
from steerboard.recipes.limits import Budget
from steerboard.recipes.planning import plan as plans
from steerboard.recipes.schemas import (
    DraftOut,
    Foresee,
    PipelineCreate,
    PlanOut,
    RecipeCheck,
    RecipeOut,
    RecipeRequest,
    RecipeText,
    StagesRowCheck,
)
from steerboard.recipes.starting_stage import stages_from
from steerboard.runs.launch.catalogue import ProjectCatalogue
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.schemas.runs import PipelineDetail
from steerboard_contracts.wording import listed

router = Router(tags=["recipes"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]


@router.get("/recipes")
def list_recipes(access: Reader) -> list[RecipeOut]:
    """The recipes that ship with Steerboard."""
    return [_shipped(text) for text in service.shipped().values()]


@router.get("/recipes/{name}", responses=problems(404))
def get_recipe(name: str, access: Reader) -> RecipeOut:
    return _shipped(service.shipped_text(name))


@router.post("/recipes/read", responses=problems(422))
@in_pool("computing")
def read_recipe(body: RecipeText, request: Request, access: Reader) -> RecipeOut:
    """Name, description and inputs of a recipe's text. Checks only its YAML."""
    return RecipeOut.of(body.text, Budget(gone=has_left(request)))


@router.post("/recipes/check", responses=problems(404, 422))
@in_pool("computing")
def check_recipe(body: RecipeCheck, request: Request, session: Db, access: Reader) -> PlanOut:
    """The stages that a start would run, with resolved configs and inputs. Starts nothing.

    A folder that is named as a base model is read only for callers who may start runs."""
    planned = _plan(body, request, session, access)
    running = None if body.from_stage is None else stages_from(planned, body.from_stage)
    checks = row_checks.refuse_failing(session, planned, running)
    plan = PlanOut.of(planned, _foresee(request, session), running)
    for stage in plan.stages:
        check = checks.get(stage.name)
        stage.warnings += [check.warning] if check and check.warning else []
    if body.from_stage is None:
        return plan
    taken = service.taken_from_finished(request.app.state.sessions, access.project, planned, body.from_stage)
    if taken:
        plan.notes = [*plan.notes, f"{listed(taken)} {'are' if len(taken) > 1 else 'is'} taken from finished runs"]
    return plan


@router.post("/recipes/row-checks", responses=problems(404, 422))
@in_pool("computing")
def check_recipe_rows(body: RecipeCheck, request: Request, session: Db, access: Runner) -> list[StagesRowCheck]:
    """Have the rows of training stages tokenised before a start, as `runs/row-check` does for a run, or learn why that
    cannot be done yet. Ask again until each `state` is an end. Equal checks are one."""
    planned = _plan(body, request, session, access)
    running = None if body.from_stage is None else stages_from(planned, body.from_stage)
    return row_checks.check_stages(session, access.project, planned, access.actor, running)


@router.post("/recipes/draft", responses=problems(404, 422))
@in_pool("computing")
def draft_recipe(body: RecipeRequest, request: Request, session: Db, access: Reader) -> DraftOut:
    """The stages of a recipe that is still being written, each fault at its field. Refuses a text without stages."""
    catalogue, budget = _catalogue(request, session, access), Budget(gone=has_left(request))
    return DraftOut.of(plans.read_recipe(_text(body), body.set, catalogue, budget), _foresee(request, session))


@router.post("/pipelines", status_code=201, responses=problems(404, 409, 422))
@in_pool("computing")
def start_pipeline(body: PipelineCreate, request: Request, session: Db, access: Runner) -> PipelineDetail:
    """Check a recipe and start it: the pipeline and all its runs, or nothing."""
    planned = _plan(body, request, session, access)
    pipeline = service.start(
        session,
        access.project,
        planned,
        access.actor,
        reuse=body.reuse,
        first=body.from_stage,
        store=request.app.state.store,
    )
    detail = {"recipe": planned.name, "set": body.set, "stages": [stage.name for stage in planned.stages]}
    detail |= {"from": body.from_stage} if body.from_stage is not None else {}
    audit(session, access, "pipeline.start", f"pipeline {pipeline.name} {pipeline.id}", detail)
    return pipelines.detail(session, pipeline)


@functools.cache
def _shipped(text: str) -> RecipeOut:
    """Read once: to parse them all takes a quarter of a second."""
    return RecipeOut.of(text)


def _plan(body: RecipeRequest, request: Request, session: Session, access: Access) -> plans.Plan:
    catalogue = _catalogue(request, session, access)
    return plans.make_plan(_text(body), body.set, catalogue, Budget(gone=has_left(request)))


def _catalogue(request: Request, session: Session, access: Access) -> ProjectCatalogue:
    folders, store = folders_for(request, access), request.app.state.store
    return ProjectCatalogue(session, access.project, folders, store)


def _foresee(request: Request, session: Session) -> Foresee:
    return functools.partial(service.foreseen, session, request.app.state.store)


def _text(body: RecipeRequest) -> str:
    return body.text if body.text is not None else service.shipped_text(body.recipe or "")
