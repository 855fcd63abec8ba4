"""Cleaning datasets over HTTP, below `/api/v1/projects/{project}/datasets`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from sqlalchemy import select

from steerboard.accounts import idempotency
from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.datasets.cleaning import process, service
from steerboard.datasets.cleaning.process import CleaningJob
from steerboard.datasets.cleaning.rules import Reason
from steerboard.datasets.cleaning.schemas import CleaningCreate, CleaningPreview, CleaningPreviewIn, DroppedRow
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.datasets.tables import Dataset, DroppedRowRecord
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate

router = Router()

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.post("/{dataset}/cleaning/preview", responses=problems(404))
def preview_cleaning(
    session: Db, access: Read, request: Request, dataset: str, body: CleaningPreviewIn
) -> CleaningPreview:
    """How many pairs each rule would drop, with examples. Nothing is changed."""
    found = get_dataset(session, access.project, dataset)
    if found.rows <= process.ROWS_AT_ONCE:
        return service.preview(session, access.project, found, body)
    job = CleaningJob(project=access.project.id, dataset=found.id, actor=access.actor, preview=body)
    done = process.run(request.app.state.settings, job)
    assert done.preview is not None
    return done.preview


@router.post("/{dataset}/cleaning", status_code=201, responses=problems(404, 409))
def clean_dataset(session: Db, access: Write, request: Request, dataset: str, body: CleaningCreate) -> DatasetOut:
    """A new version of a preference dataset without the pairs that the rules drop; which and why is kept."""
    found = get_dataset(session, access.project, dataset)
    if found.rows <= process.ROWS_AT_ONCE:
        made = service.clean(session, access.project, found, body, access.actor)
        process.note(session, access, found, made)
        return dataset_out(session, made)
    job = CleaningJob(
        project=access.project.id,
        dataset=found.id,
        actor=access.actor,
        create=body,
        key=idempotency.hand_over(request),
    )
    done = process.run(request.app.state.settings, job)
    assert done.created is not None
    return done.created


@router.get("/{dataset}/dropped", responses=problems(404))
def list_dropped_rows(
    session: Db,
    access: Read,
    dataset: str,
    rule: Reason | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Page[DroppedRow]:
    """The rows that a cleaned or edited dataset lacks, by their number in the dataset that it was made from, and why
    they were dropped. Empty for other datasets."""
    found = get_dataset(session, access.project, dataset)
    query = select(DroppedRowRecord).where(DroppedRowRecord.dataset_id == found.id)
    if rule is not None:
        query = query.where(DroppedRowRecord.rule == rule)
    parent = session.get(Dataset, found.parent_id) if found.parent_id else found
    assert parent is not None
    return paginate(
        session,
        query,
        DroppedRowRecord.row,
        lambda record: service.dropped_out(session, parent, [record])[0],
        cursor=cursor,
        limit=limit,
        newest_first=False,
        convert_all=lambda page: service.dropped_out(session, parent, page),
    )
