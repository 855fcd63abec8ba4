"""Pushes to a hub over HTTP: the card beforehand, then the run."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.hub_tokens_api import hub_token_out
from steerboard.datasets.lookup import get_dataset
from steerboard.platform.http.errors import InvalidRequest, problems
from steerboard.platform.http.stored_file import stored_file
from steerboard.publishing import gguf, service
from steerboard.publishing.gguf import GgufExport, GgufStart
from steerboard.publishing.schemas import CardOut, DatasetPush, HubBaseName, Licence, ModelPush, SnippetOut
from steerboard.publishing.snippets import SnippetFor, needs_of, snippet
from steerboard.registry.service import get_model
from steerboard.runs import queries
from steerboard.runs.schemas.runs import RunDetail
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.run_kinds.push import Repository, WeightsForm

models_router = Router(prefix="/models", tags=["models"])
datasets_router = Router(prefix="/datasets", tags=["datasets"])

Read = Annotated[Access, Depends(AccessTo("read"))]
# It speaks with the token of the project or the server.
MayRun = Annotated[Access, Depends(AccessTo("run"))]
Write = Annotated[Access, Depends(AccessTo("write"))]
Repo = Annotated[Repository, Query(description="Repository that the card is for.")]


@models_router.get("/{model}/card", responses=problems(404))
def model_card(
    session: Db,
    access: Read,
    model: str,
    repo: Repo = "org/name",
    weights: WeightsForm = "merged",
    base: HubBaseName | None = None,
    licence: Licence | None = None,
) -> CardOut:
    """The README.md that a push would send, written from the lineage and the newest reports. Error codes of a 422:
    `not_an_adapter`, `hub_base_unknown`."""
    row = get_model(session, access.project, model)
    card = service.card_of_model(session, row, repo, weights, base, licence)
    return CardOut(text=card.text, base=card.base, token=hub_token_out(access).source)


@models_router.get("/{model}/snippet", responses=problems(404))
def model_snippet(
    request: Request,
    session: Db,
    access: Read,
    model: str,
    where: Annotated[SnippetFor, Query(alias="for")] = "transformers",
    score: Annotated[
        str | None, Query(max_length=1000, description="A number, or `helpfulness:4,verbosity:2`; null: its default.")
    ] = None,
) -> SnippetOut:
    """Code that asks this model outside of the platform, or through its OpenAI-compatible API. Error codes of a 422:
    `wrong_role`, `no_score_format`, `unknown_attribute`, `engine_refused`."""
    row = get_model(session, access.project, model)
    info = ModelInfo.model_validate(row.info)
    server = request.app.state.settings.public_url
    text, condition = snippet(where, row.name, info, server, access.project.name, _condition(score))
    return SnippetOut(text=text, asked=condition, needs=needs_of(text))


def _condition(score: str | None) -> Condition | None:
    """Raises `InvalidRequest`."""
    try:
        return None if score is None else Condition.model_validate(score)
    except ValidationError as error:
        why = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise InvalidRequest(f"the score {why}", errors=[ErrorLocation(location="query.score", message=why)]) from None


@models_router.post("/{model}/push", status_code=201, responses=problems(404, 409))
def push_model(session: Db, access: Write, model: str, body: ModelPush) -> RunDetail:
    """Start a run that pushes a model to a repository of the hub, in one commit. An equal push changes nothing there.
    Error codes of a 422: `not_an_adapter`, `hub_base_unknown`."""
    row = get_model(session, access.project, model)
    run = service.push_model(session, access.project, row, body, access.actor)
    audit(session, access, "model.push", f"model {row.name} {row.id}", {"repo": body.repo, "private": body.private})
    return queries.detail(session, run, access.owner)


@models_router.get("/{model}/gguf", responses=problems(404))
def gguf_exports(session: Db, access: Read, model: str) -> list[GgufExport]:
    """Finished exports as GGUF, newest first, each with what the comparison with transformers found."""
    return gguf.gguf_exports(session, get_model(session, access.project, model))


@models_router.post("/{model}/gguf", status_code=201, responses=problems(404, 409))
def export_gguf(session: Db, access: MayRun, model: str, body: GgufStart) -> RunDetail:
    """Start a run that converts a model, merged if it is an adapter, to one GGUF file with a Modelfile, and compares
    what llama.cpp makes of prompts with what transformers does. Error codes of a 422: `wrong_role`."""
    row = get_model(session, access.project, model)
    run = gguf.start_gguf(session, access.project, row, body, access.actor)
    return queries.detail(session, run, access.owner)


@models_router.get("/{model}/gguf/{run}/{path:path}", response_class=StreamingResponse, responses=problems(404))
def download_gguf_file(
    request: Request, session: Db, access: Read, model: str, run: uuid.UUID, path: str
) -> StreamingResponse:
    """A file of an export, as it is stored. Its SHA-256 is the ETag; a damaged blob ends the answer early."""
    file = gguf.gguf_file(session, get_model(session, access.project, model), run, path)
    return stored_file(request.app.state.store, file.model_dump())


@datasets_router.get("/{dataset}/card", responses=problems(404))
def dataset_card(
    session: Db, access: Read, dataset: str, repo: Repo = "org/name", licence: Licence | None = None
) -> CardOut:
    """The README.md that a push would send."""
    row = get_dataset(session, access.project, dataset)
    card = service.card_of_dataset(session, row, repo, licence)
    return CardOut(text=card.text, token=hub_token_out(access).source)


@datasets_router.post("/{dataset}/push", status_code=201, responses=problems(404, 409))
def push_dataset(session: Db, access: Write, dataset: str, body: DatasetPush) -> RunDetail:
    """Start a run that pushes a dataset to a repository of the hub: a parquet file of each split, in one commit. An
    equal push changes nothing there."""
    row = get_dataset(session, access.project, dataset)
    run = service.push_dataset(session, access.project, row, body, access.actor)
    audit(session, access, "dataset.push", f"dataset {row.name} {row.id}", {"repo": body.repo, "private": body.private})
    return queries.detail(session, run, access.owner)
