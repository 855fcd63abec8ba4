"""The words of samples, indexed in the background: for every segment of rows, the rows of each word.

A segment is one transaction, so a kill costs at most one segment's work; the process indexing it holds its row's
lock, so that no two processes do. A GIN index over `tsvector` would mix the datasets, take twice the space, and have
to fetch and sort every row of a common word before the first page.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass

from sqlalchemy import delete, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from steerboard.datasets.derived_tables import SearchSegment, SearchWord
from steerboard.datasets.search.tokens import PIECE, SAMPLE_PIECES, words_sql

log = logging.getLogger(__name__)

SEGMENT_ROWS = 32_768  # row numbers within a segment are unsigned and two bytes long

_INDEX = text(
    f"""
    INSERT INTO search_words (segment_id, word, rows)
    SELECT :segment, word, string_agg(int2send((s.row - :first)::int2), ''::bytea)
    FROM samples s {SAMPLE_PIECES} CROSS JOIN LATERAL unnest({words_sql(PIECE)}) word
    WHERE s.dataset_id = :dataset AND s.row >= :first AND s.row < :first + :rows
    GROUP BY word
    """
)
_LEXICON = text("SELECT E'\\n' || string_agg(word, E'\\n') || E'\\n' FROM search_words WHERE segment_id = :segment")


@dataclass(frozen=True)
class IndexState:
    """How far the index of one dataset is: `done` of `rows`; `waiting` are the segments that are not in it."""

    rows: int
    done: int
    waiting: list[tuple[int, int]]
    """(first row, number of rows)"""

    @property
    def ready(self) -> bool:
        return not self.waiting


def add_segments(session: Session, dataset_id: uuid.UUID, rows: int) -> None:
    """Enter a dataset's new rows to be indexed."""
    session.add_all(
        SearchSegment(dataset_id=dataset_id, first_row=first, rows=min(SEGMENT_ROWS, rows - first), ready=False)
        for first in range(0, rows, SEGMENT_ROWS)
    )


def index_next(session: Session, failed: set[int]) -> bool:
    """Index one segment that no other process is at. Returns whether there was one.

    One that cannot be indexed is put into `failed`, and left out by later calls: it must not hold up the others.
    """
    segment = session.scalar(
        select(SearchSegment)
        .where(~SearchSegment.ready, SearchSegment.id.not_in(failed))
        .order_by(SearchSegment.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    if segment is None:
        return False
    session.execute(text("SET LOCAL work_mem = '64MB'"))  # the words of a segment, sorted in memory
    id_ = segment.id
    parameters = {"segment": id_, "first": segment.first_row, "rows": segment.rows, "dataset": segment.dataset_id}
    try:
        with session.begin_nested():
            session.execute(_INDEX, parameters)
            segment.lexicon = session.scalar(_LEXICON, {"segment": id_}) or "\n"
            segment.ready = True
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        log.exception("rows %d to %d of dataset %s: no words", segment.first_row, segment.rows, segment.dataset_id)
        failed.add(id_)
    return True


def index_state(session: Session, owner: uuid.UUID) -> IndexState:
    segments = session.execute(
        select(SearchSegment.first_row, SearchSegment.rows, SearchSegment.ready)
        .where(SearchSegment.dataset_id == owner)
        .order_by(SearchSegment.first_row)
    ).all()
    waiting = [(first, rows) for first, rows, ready in segments if not ready]
    total = sum(rows for _, rows, _ in segments)
    return IndexState(total, total - sum(rows for _, rows in waiting), waiting)


def delete_segments(session: Session, dataset_id: uuid.UUID) -> None:
    """Waits for those that are being indexed just now."""
    ids = list(
        session.scalars(
            select(SearchSegment.id)
            .where(SearchSegment.dataset_id == dataset_id)
            .order_by(SearchSegment.id)
            .with_for_update()
        )
    )
    session.execute(delete(SearchWord).where(SearchWord.segment_id == func.any(ids)))
    session.execute(delete(SearchSegment).where(SearchSegment.id == func.any(ids)))
