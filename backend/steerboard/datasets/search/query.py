"""Which rows of a dataset hold every word of a query, or a text as a part of theirs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from steerboard.datasets.array_cache import ARRAYS
from steerboard.datasets.derived_tables import SearchSegment, SearchWord
from steerboard.datasets.errors import SearchNotReady
from steerboard.datasets.rows.row_writer import raw_connection
from steerboard.datasets.search.indexing import IndexState, index_state
from steerboard.datasets.search.tokens import PIECE, SAMPLE_PIECES, holds, phrases_of, words_sql
from steerboard.datasets.tables import Dataset

# Rows that are read through where the index does not have them yet: about half a second.
_SCANNED_ROWS = 5_000

_WORDS = text(f"SELECT {words_sql(':query')}")
_SCAN = text(
    f"""
    SELECT s.row FROM samples s {SAMPLE_PIECES} CROSS JOIN LATERAL unnest({words_sql(PIECE)}) word
    WHERE s.dataset_id = :dataset AND s.row >= :first AND s.row < :first + :rows AND word = ANY(:words)
    GROUP BY s.row HAVING count(DISTINCT word) = :wanted
    """
)

Mask = NDArray[np.bool_]
Holds = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True)
class SearchHits:
    """`mask`: by row, whether it may be a hit. `holds`: whether a sample of these is one; None where all are."""

    mask: Mask
    holds: Holds | None


def find(session: Session, dataset: Dataset, query: str) -> SearchHits:
    """Rows with every word of the query; a query without a word finds all. Raises `SearchNotReady` while many rows are
    not indexed yet."""
    owner = dataset.base_dataset_id or dataset.id
    words: list[str] = session.scalar(_WORDS, {"query": query}) or []
    if not words:
        return SearchHits(np.ones(dataset.rows, np.bool_), None)
    state = usable_index(session, dataset)
    if state.ready:  # the pages and the count of one search come one after the other
        key = ("words", owner, *sorted(words))
        bits = ARRAYS.get(key, lambda: np.packbits(_indexed(session, owner, dataset.rows, words)))
        mask = np.unpackbits(bits, count=dataset.rows).astype(np.bool_)
    else:
        mask = _indexed(session, owner, dataset.rows, words)
        _scan(session, owner, state, words, mask)
    phrases = phrases_of(query)
    return SearchHits(mask, partial(holds, phrases=phrases) if phrases else None)


def usable_index(session: Session, dataset: Dataset) -> IndexState:
    """How far the index is. Raises `SearchNotReady` where too many rows are missing to read them through."""
    state = index_state(session, dataset.base_dataset_id or dataset.id)
    if sum(rows for _, rows in state.waiting) > _SCANNED_ROWS:
        raise SearchNotReady(
            f"the words of {dataset.name!r} are being indexed: {state.done:,} of {state.rows:,} rows are done",
            hint="Try again in a moment; without `q` the list works meanwhile.",
            extra={"done": state.done, "rows": state.rows},
        )
    return state


def _indexed(session: Session, owner: uuid.UUID, rows: int, words: list[str]) -> Mask:
    sizes = session.execute(
        select(SearchWord.word, SearchWord.segment_id, SearchSegment.first_row, func.octet_length(SearchWord.rows))
        .join(SearchSegment, SearchSegment.id == SearchWord.segment_id)
        .where(SearchSegment.dataset_id == owner, SearchWord.word == func.any(words))
    ).all()
    by_segment: dict[int, dict[str, int]] = {}
    firsts: dict[int, int] = {}
    for word, segment, first, size in sizes:
        by_segment.setdefault(segment, {})[word] = size
        firsts[segment] = first
    mask = np.zeros(rows, np.bool_)
    # Only segments that have every word; a round for each word, rarest first, and for segments that still have hits.
    left = {
        segment: sorted(have, key=have.__getitem__) for segment, have in by_segment.items() if len(have) == len(words)
    }
    hits: dict[int, NDArray[np.uint16]] = {}
    for turn in range(len(words)):
        wanted = [(segment, order[turn]) for segment, order in left.items() if turn == 0 or len(hits[segment])]
        for segment, packed in postings(session, wanted):
            places = np.frombuffer(packed, ">u2").astype(np.uint16)
            hits[segment] = places if turn == 0 else _both(hits[segment], places)
    for segment, places in hits.items():
        mask[firsts[segment] + places.astype(np.int64)] = True
    return mask


def _both(values: NDArray[np.uint16], other: NDArray[np.uint16]) -> NDArray[np.uint16]:
    member = np.zeros(1 << 16, np.bool_)
    member[other] = True
    return values[member[values]]


def postings(session: Session, wanted: list[tuple[int, str]]) -> list[tuple[int, bytes]]:
    if not wanted:
        return []
    segments, words = [segment for segment, _ in wanted], [word for _, word in wanted]
    rows = raw_connection(session).execute(
        "SELECT w.segment_id, w.rows FROM unnest(%s::bigint[], %s::text[]) AS asked (segment_id, word)"
        " JOIN search_words w USING (segment_id, word)",
        [segments, words],
        binary=True,
    )
    return [(segment, packed) for segment, packed in rows]


def _scan(session: Session, owner: uuid.UUID, state: IndexState, words: list[str], mask: Mask) -> None:
    for first, rows in state.waiting:
        parameters = {"dataset": owner, "first": first, "rows": rows, "words": words, "wanted": len(words)}
        mask[list(session.scalars(_SCAN, parameters))] = True
