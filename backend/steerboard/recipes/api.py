"""Recipes over HTTP: what ships, what a recipe would do, and starting one."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.model_folders import folders_for
from steerboard.accounts.http.routes import Router
from steerboard.platform.http.errors import problems
from steerboard.recipes import service
from steerboard.recipes.schemas import DraftOut, PipelineCreate, PlanOut, RecipeOut, RecipeRequest, RecipeText
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.schemas.runs import PipelineDetail

router = Router(tags=["recipes"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]


@router.get("/recipes")
def list_recipes(access: Reader) -> list[RecipeOut]:
    """The recipes that ship with Steerboard."""
    return [RecipeOut.of(text) for text in service.shipped().values()]


@router.get("/recipes/{name}", responses=problems(404))
def get_recipe(name: str, access: Reader) -> RecipeOut:
    return RecipeOut.of(service.shipped_text(name))


@router.post("/recipes/read", responses=problems(422))
def read_recipe(body: RecipeText, access: Reader) -> RecipeOut:
    """Name, description and inputs of a text. Checks its YAML, not what it asks for."""
    return RecipeOut.of(body.text)


@router.post("/recipes/check", responses=problems(404, 422))
def check_recipe(body: RecipeRequest, request: Request, session: Db, access: Reader) -> PlanOut:
    """The stages that a start would create, with resolved configs and inputs. Starts nothing.

    A folder that is named as a base model is looked at only for those who may start runs."""
    folders, store = folders_for(request, access), request.app.state.store
    return PlanOut.of(service.plan(session, access.project, _text(body), body.set, folders, store))


@router.post("/recipes/draft", responses=problems(404, 422))
def draft_recipe(body: RecipeRequest, request: Request, session: Db, access: Reader) -> DraftOut:
    """The stages of a recipe that is still being written, each fault at its field. Refuses a text without stages."""
    folders, store = folders_for(request, access), request.app.state.store
    return DraftOut.of(service.read(session, access.project, _text(body), body.set, folders, store))


@router.post("/pipelines", status_code=201, responses=problems(404, 409, 422))
def start_pipeline(body: PipelineCreate, request: Request, session: Db, access: Runner) -> PipelineDetail:
    """Check a recipe and start it: the pipeline and all its runs, or nothing."""
    folders, store = folders_for(request, access), request.app.state.store
    planned = service.plan(session, access.project, _text(body), body.set, folders, store)
    pipeline = service.start(session, access.project, planned, access.actor, reuse=body.reuse, first=body.from_stage)
    detail = {"recipe": planned.name, "set": body.set, "stages": [stage.name for stage in planned.stages]}
    detail |= {"from": body.from_stage} if body.from_stage is not None else {}
    audit(session, access, "pipeline.start", f"pipeline {pipeline.name} {pipeline.id}", detail)
    return pipelines.detail(session, pipeline)


def _text(body: RecipeRequest) -> str:
    return body.text if body.text is not None else service.shipped_text(body.recipe or "")
