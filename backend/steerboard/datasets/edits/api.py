"""Edits of datasets over HTTP, below `/api/v1/projects/{project}/datasets`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.datasets.edits import jobs
from steerboard.datasets.edits.schemas import EditCreate
from steerboard.datasets.imports.execution.requests import clean_in_process
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.review.schemas import VersionCreate
from steerboard.datasets.schemas import DatasetOut
from steerboard.platform.concurrency import in_pool
from steerboard.platform.http.errors import problems

router = Router()

Write = Annotated[Access, Depends(AccessTo("write"))]
# Rows that may be written within a request: half a second.
_ROWS_AT_ONCE = 5000


@router.post("/{dataset}/edits", status_code=201, responses=problems(404, 409))
@in_pool("processes")
def edit_dataset(session: Db, access: Write, request: Request, dataset: str, body: EditCreate) -> DatasetOut:
    """A new version of a dataset of pairs or of answers with a thumb, with marked rows left out or flipped: the sides
    of a pair change places, a thumb turns. `GET .../dropped` of
    the new version lists what it lacks. One held-out row at most may be flipped; the version, and what is measured on
    it, names changed held-out rows as `held_out_changes`."""
    stored = get_dataset(session, access.project, dataset)
    if stored.rows <= _ROWS_AT_ONCE:
        return jobs.edit(session, access, stored, body)
    return DatasetOut.model_validate(clean_in_process(request, access, "edit", body, stored.id, stores=True))


@router.post("/{dataset}/review/version", status_code=201, responses=problems(404, 409))
@in_pool("processes")
def make_version(session: Db, access: Write, request: Request, dataset: str, body: VersionCreate) -> DatasetOut:
    """A new version with all pending changes of rows, which are then no longer pending. It has the flags and comments
    of the rows that it keeps. As with `edits`, one held-out row at most may be flipped, and changed held-out rows are
    named."""
    stored = get_dataset(session, access.project, dataset)
    if stored.rows <= _ROWS_AT_ONCE:
        return jobs.make_version(session, access, stored, body)
    return DatasetOut.model_validate(clean_in_process(request, access, "edited_version", body, stored.id, stores=True))
