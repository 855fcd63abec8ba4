"""Edits of datasets over HTTP, below `/api/v1/projects/{project}/datasets`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.edits import service
from steerboard.datasets.edits.schemas import EditCreate
from steerboard.datasets.held_out_changes import changes_of
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.platform.http.errors import problems

router = Router()

Write = Annotated[Access, Depends(AccessTo("write"))]


@router.post("/{dataset}/edits", status_code=201, responses=problems(404, 409))
def edit_dataset(session: Db, access: Write, dataset: str, body: EditCreate) -> DatasetOut:
    """A new version of a dataset of pairs or of answers with a thumb, with marked rows left out or flipped: the sides
    of a pair change places, a thumb turns. `GET .../dropped` of
    the new version lists what it lacks. One held-out row at most may be flipped; the version, and what is measured on
    it, names changed held-out rows as `held_out_changes`."""
    found = get_dataset(session, access.project, dataset)
    made = service.edit(session, access.project, found, body, access.actor)
    detail = {
        "dataset": made.name,
        "dropped": len(set(body.drop)),
        "flipped": len(set(body.flip)),
        "held_out": sum(one.flipped + one.dropped for one in changes_of(made) if one.dataset_id == made.id),
    }
    audit(session, access, "dataset.edit", found.name, detail)
    return dataset_out(session, made)
