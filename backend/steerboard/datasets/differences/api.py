"""Versions and their differences over HTTP, below `/api/v1/projects/{project}/datasets`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.datasets.differences import service
from steerboard.datasets.differences.schemas import Change, Difference, DifferentRow, Version
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.tables import SampleRow
from steerboard.platform.concurrency import in_pool
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, decode_cursor, encode_cursor

router = Router()

Read = Annotated[Access, Depends(AccessTo("read"))]
Before = Annotated[str, Query(max_length=200, description="The dataset to compare with, by id or name.")]


@router.get("/{dataset}/versions", responses=problems(404))
def list_versions(session: Db, access: Read, dataset: str) -> list[Version]:
    """Every dataset that was cleaned or edited from the same one, the oldest first, 500 at most."""
    return service.versions_of(session, get_dataset(session, access.project, dataset))


@router.get("/{dataset}/difference", responses=problems(404))
@in_pool("computing")
def get_difference(session: Db, access: Read, dataset: str, before: Before) -> Difference:
    """How many rows were added, removed and changed since `before`, a dataset of the same kind. Versions of one dataset
    are compared by the records of cleaning and edits; other datasets by content: equal rows belong together, then rows
    with the same prompt, then rows of which only the prompt differs. Rewards are not compared."""
    stored = get_dataset(session, access.project, dataset)
    return service.difference(session, get_dataset(session, access.project, before), stored)


@router.get("/{dataset}/difference/rows", responses=problems(404))
@in_pool("computing")
def list_different_rows(
    session: Db,
    access: Read,
    dataset: str,
    before: Before,
    change: Change | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Page[DifferentRow]:
    """The rows that differ, in their order."""
    stored = get_dataset(session, access.project, dataset)
    start = 0 if cursor is None else max(0, decode_cursor(cursor, SampleRow.row))
    rows, following = service.page(session, get_dataset(session, access.project, before), stored, change, start, limit)
    return Page(items=rows, next=None if following is None else encode_cursor(following))
