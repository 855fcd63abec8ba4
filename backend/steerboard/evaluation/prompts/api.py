"""Prompt sets over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from sqlalchemy import select
from sqlalchemy.orm import defer
from starlette.datastructures import FormData

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.imports.execution.requests import import_in_process
from steerboard.datasets.imports.uploads import Form, Write, checked, form_body, uploaded
from steerboard.evaluation.prompts.known_sets import fetched, known_set, known_sets
from steerboard.evaluation.prompts.prompt_sets import sets_out
from steerboard.evaluation.prompts.schemas import KnownPromptSet, PromptSetForm, PromptSetOut
from steerboard.evaluation.prompts.service import get_prompt_set
from steerboard.evaluation.tables import PromptSet
from steerboard.platform.concurrency import in_pool
from steerboard.platform.http.errors import InvalidRequest, problems
from steerboard.platform.http.paging import Page, named, paginate

router = Router(prefix="/prompt-sets", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]


async def form_or_json(request: Request, form: Form) -> FormData:
    """A known set needs no file, so its name may come as JSON."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        return form
    try:
        body = await request.json()
    except ValueError as error:
        raise InvalidRequest("the body is not JSON") from error
    if not isinstance(body, dict):
        raise InvalidRequest("the body is not an object")
    return FormData({name: str(value) for name, value in body.items() if value is not None})


@router.get("")
def list_prompt_sets(
    session: Db,
    access: Read,
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Page[PromptSetOut]:
    """Newest first."""
    query = select(PromptSet).where(PromptSet.project_id == access.project.id).options(defer(PromptSet.prompts))
    return paginate(
        session,
        named(query, PromptSet, name),
        PromptSet.id,
        lambda listed: sets_out(session, [listed])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: sets_out(session, page),
    )


@router.get("/known")
def list_known_prompt_sets(access: Read) -> list[KnownPromptSet]:
    """Benchmarks whose prompts the server can fetch, with their licences."""
    return known_sets()


@router.post(
    "",
    status_code=201,
    responses=problems(409, 413),
    openapi_extra=form_body(PromptSetForm, file_needed=False),
)
@in_pool("processes")
def create_prompt_set(
    request: Request, access: Write, form: Annotated[FormData, Depends(form_or_json)]
) -> PromptSetOut:
    """Prompts of a file (FastChat, AlpacaEval, Arena-Hard, or JSON lines with `prompt`), or of a known benchmark, which
    the server fetches where no file is given. With both, the file must have the benchmark's prompts and turns."""
    given, source = checked(PromptSetForm, form), uploaded(form)
    if given.known is not None:
        format = known_set(given.known).format if given.format == "auto" else given.format
        given = given.model_copy(update={"name": given.name or given.known, "format": format})
        source = source or fetched(given.known or "", request.app.state.settings)
    if source is None:
        raise InvalidRequest("give a file, or the name of a known prompt set", hint="Send `file` or `known`.")
    return PromptSetOut.model_validate(import_in_process(request, access, "prompts", given, source))


@router.delete("/{prompt_set}", status_code=204, responses=problems(404))
def delete_prompt_set(session: Db, access: Write, prompt_set: str) -> None:
    """Evaluations keep their copies of its prompts."""
    stored = get_prompt_set(session, access.project, prompt_set)
    session.delete(stored)
    audit(session, access, "prompt_set.delete", stored.name)
