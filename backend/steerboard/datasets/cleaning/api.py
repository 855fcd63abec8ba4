"""Cleaning datasets over HTTP, below `/api/v1/projects/{project}/datasets`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.datasets.cleaning import jobs, service
from steerboard.datasets.cleaning.rules import Reason
from steerboard.datasets.cleaning.schemas import CleaningCreate, CleaningPreview, CleaningPreviewIn, DroppedRow
from steerboard.datasets.imports.execution.requests import clean_in_process
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.schemas import DatasetOut
from steerboard.datasets.tables import Dataset, DroppedRowRecord
from steerboard.platform.concurrency import in_pool
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate
from steerboard.platform.kept_results import KeptResults

router = Router()

# A dataset's rows never change, and people try the same rules more than once.
_PREVIEWS: KeptResults[CleaningPreview] = KeptResults(64)

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.post("/{dataset}/cleaning/preview", responses=problems(404))
@in_pool("processes")
def preview_cleaning(
    session: Db, access: Read, request: Request, dataset: str, body: CleaningPreviewIn
) -> CleaningPreview:
    """How many pairs each rule would drop, with examples. Nothing is changed."""
    stored = get_dataset(session, access.project, dataset)

    def compute() -> CleaningPreview:
        if stored.rows <= jobs.ROWS_AT_ONCE:
            return service.preview(session, access.project, stored, body)
        answer = clean_in_process(request, access, "cleaning_preview", body, stored.id, stores=False)
        return CleaningPreview.model_validate(answer)

    return _PREVIEWS.get(service.read_from(session, access.project, stored, body), compute)


@router.post("/{dataset}/cleaning", status_code=201, responses=problems(404, 409))
@in_pool("processes")
def clean_dataset(session: Db, access: Write, request: Request, dataset: str, body: CleaningCreate) -> DatasetOut:
    """Create a version of a preference dataset without the pairs that the rules drop. It records which and why."""
    stored = get_dataset(session, access.project, dataset)
    if stored.rows <= jobs.ROWS_AT_ONCE:
        return jobs.clean(session, access, stored, body)
    return DatasetOut.model_validate(clean_in_process(request, access, "cleaning", body, stored.id, stores=True))


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
    stored = get_dataset(session, access.project, dataset)
    query = select(DroppedRowRecord).where(DroppedRowRecord.dataset_id == stored.id)
    if rule is not None:
        query = query.where(DroppedRowRecord.rule == rule)
    parent = session.get(Dataset, stored.parent_id) if stored.parent_id else stored
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
