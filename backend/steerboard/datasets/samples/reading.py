"""Stored samples in the order that someone asks for."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing

from sqlalchemy import ARRAY, Integer, func, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from steerboard.datasets.lookup import owner_of
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.platform.row_sizes import ROWS_AT_ONCE


def samples_in_order(session: Session, dataset: Dataset, rows: Sequence[int]) -> Generator[SampleRow]:
    """The samples in the order of `rows`, a few at a time."""
    wanted = list(rows)
    query = (
        select(SampleRow)
        .where(SampleRow.dataset_id == owner_of(dataset), SampleRow.row == func.any(wanted))
        .order_by(func.array_position(sql_cast(wanted, ARRAY(Integer)), SampleRow.row))
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    with closing(session.scalars(query)) as samples:
        yield from samples
