"""Pushes to a hub over HTTP: the card beforehand, then the run."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.hub_tokens_api import hub_token_out
from steerboard.datasets.lookup import get_dataset
from steerboard.platform.http.errors import problems
from steerboard.publishing import service
from steerboard.publishing.schemas import CardOut, DatasetPush, HubBaseName, Licence, ModelPush
from steerboard.registry.service import get_model
from steerboard.runs import queries
from steerboard.runs.schemas.runs import RunDetail
from steerboard_contracts.run_kinds.push import Repository, WeightsForm

models_router = Router(prefix="/models", tags=["models"])
datasets_router = Router(prefix="/datasets", tags=["datasets"])

Read = Annotated[Access, Depends(AccessTo("read"))]
# It speaks with the token of the project or the server.
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


@models_router.post("/{model}/push", status_code=201, responses=problems(404, 409))
def push_model(session: Db, access: Write, model: str, body: ModelPush) -> RunDetail:
    """Start a run that pushes a model to a repository of the hub, in one commit. An equal push changes nothing there.
    Error codes of a 422: `not_an_adapter`, `hub_base_unknown`."""
    row = get_model(session, access.project, model)
    run = service.push_model(session, access.project, row, body, access.actor)
    audit(session, access, "model.push", f"model {row.name} {row.id}", {"repo": body.repo, "private": body.private})
    return queries.detail(session, run, access.owner)


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
