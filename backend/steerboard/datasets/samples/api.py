"""The samples of a dataset page by page, how many a filter leaves, and the dataset's figures."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Query
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.datasets import service
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.queries import rewards_of, sample_out
from steerboard.datasets.review.marks import marks_of_rows
from steerboard.datasets.review.schemas import Marked
from steerboard.datasets.samples.selection import Order, SampleFilters, count_rows, select_page, select_rows
from steerboard.datasets.schemas import Match, SampleOut
from steerboard.datasets.search.excerpts import excerpts, pattern_of
from steerboard.datasets.statistics.presenters import statistics_out
from steerboard.datasets.statistics.schemas import DatasetStatisticsOut, SampleCount
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, decode_cursor, encode_cursor, paginate

router = Router()

Read = Annotated[Access, Depends(AccessTo("read"))]
_MAX_ROW = 2**31 - 1
Whole = Annotated[bool, Query(description="Do not cut large rows; ask for one at a time.")]
Reward = Annotated[float | None, Query(allow_inf_nan=False)]


def sample_filters(
    q: Annotated[
        str | None,
        Query(
            max_length=500,
            pattern=r"^[^\x00]*$",
            description='Words that a row has all of, in its prompt or its answers; `"several words"` side by side.',
        ),
    ] = None,
    source: Annotated[str | None, Query(description="Where a mixture took the row from.")] = None,
    reward_min: Reward = None,
    reward_max: Reward = None,
    reward_source: Annotated[str | None, Query(description="Whose rewards; the pinned ones when absent.")] = None,
    split: Literal["train", "held_out"] | None = None,
    from_row: Annotated[int, Query(ge=0, le=_MAX_ROW, description="Leave out the rows before this one.")] = 0,
    group: Annotated[int | None, Query(ge=0, lt=2**53, description="The responses to one prompt.")] = None,
    marked: Annotated[Marked | None, Query(description="Rows with a flag, a comment or a pending change.")] = None,
    match: Annotated[
        Match, Query(description="`part`: rows that hold `q` as it is, in whichever case, also within words.")
    ] = "words",
) -> SampleFilters:
    return SampleFilters(q, source, reward_min, reward_max, reward_source, split, from_row, group, marked, match)


Filters = Annotated[SampleFilters, Depends(sample_filters)]


@router.get("/{dataset}/samples", responses=problems(404, 409))
def list_samples(
    session: Db,
    access: Read,
    dataset: str,
    filters: Filters,
    order: Order = "row",
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    whole: Whole = False,
    excerpt: Annotated[
        int, Query(ge=20, le=100_000, description="Characters of each text around the first hit of `q`.")
    ] = 200,
) -> Page[SampleOut]:
    """The samples in the order of their rows, or by reward (equal rewards: by row, backwards in `reward_desc`).
    `reward` is that of `reward_source`, or the pinned one. With a quoted phrase, a part of a text, or large rows, a
    page may be short and still have a `next`."""
    stored = service.get_dataset(session, access.project, dataset)
    if order == "row" and filters == SampleFilters(split=filters.split, from_row=filters.from_row, match=filters.match):
        return _plain_page(session, stored, filters, cursor, limit, whole)
    after = decode_cursor(cursor, SampleRow.row) if cursor is not None else None
    selection = select_rows(session, access.project, stored, filters, order)
    page = select_page(session, stored, selection, order, after, limit)
    if selection.rewards is not None:
        values = selection.rewards.values
        rewards = {sample.row: float(values[sample.row]) for sample in page.samples}
    else:
        rewards = rewards_of(session, stored, [sample.row for sample in page.samples])
    items = _samples_out(session, stored, page.samples, rewards, whole)
    pattern = pattern_of(filters.q, filters.match) if filters.q is not None else None
    if pattern is not None:
        for item, sample in zip(items, page.samples, strict=True):
            item.excerpts = excerpts(sample.sample, pattern, excerpt)
    return Page(items=items, next=None if page.after is None else encode_cursor(page.after))


def _plain_page(
    session: Session, dataset: Dataset, filters: SampleFilters, cursor: str | None, limit: int, whole: bool
) -> Page[SampleOut]:
    """A page without filters that need more than the rows themselves."""
    query = select(SampleRow).where(SampleRow.dataset_id == owner_of(dataset), SampleRow.row >= filters.from_row)
    if filters.split:
        query = query.where(SampleRow.held_out == (filters.split == "held_out"))

    def convert(page: list[SampleRow]) -> list[SampleOut]:
        rewards = rewards_of(session, dataset, [sample.row for sample in page])
        return _samples_out(session, dataset, page, rewards, whole)

    return paginate(
        session,
        query,
        SampleRow.row,
        lambda sample: sample_out(sample, None, whole=whole),
        cursor=cursor,
        limit=limit,
        newest_first=False,
        convert_all=lambda page: convert(list(page)),
    )


def _samples_out(
    session: Session, dataset: Dataset, page: list[SampleRow], rewards: dict[int, float], whole: bool
) -> list[SampleOut]:
    marks = marks_of_rows(session, dataset, [sample.row for sample in page])
    return [
        sample_out(sample, rewards.get(sample.row), whole=whole).model_copy(update={"marks": marks.get(sample.row)})
        for sample in page
    ]


@router.get("/{dataset}/samples/count", responses=problems(404, 409))
def count_samples(session: Db, access: Read, dataset: str, filters: Filters) -> SampleCount:
    """How many rows the filters of the list leave."""
    stored = service.get_dataset(session, access.project, dataset)
    rows, exact = count_rows(session, stored, select_rows(session, access.project, stored, filters))
    return SampleCount(rows=rows, exact=exact)


@router.get("/{dataset}/statistics", responses=problems(404))
def get_dataset_statistics(session: Db, access: Read, dataset: str) -> DatasetStatisticsOut:
    """Lengths, sources, repeated rows and rewards. For datasets from before there were figures the first request makes
    them, which takes some seconds for a million rows."""
    return statistics_out(session, service.get_dataset(session, access.project, dataset))
