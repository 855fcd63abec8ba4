"""Which rows hold a text as a part of theirs, also within words.

The words of the text are looked up in the words of each segment: its first word may end a longer one, its last word may
begin one. Rows with such words are read to see whether they hold the whole text, unless it is a single word.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.array_cache import ARRAYS
from steerboard.datasets.derived_tables import SearchSegment
from steerboard.datasets.search.indexing import SEGMENT_ROWS
from steerboard.datasets.search.query import Mask, SearchHits, postings, usable_index
from steerboard.datasets.search.tokens import texts_of
from steerboard.datasets.tables import Dataset
from steerboard_contracts.errors import BadInput

# So many words of segments have a part in common that most rows have it too: they are read instead.
MOST_WORDS = 20_000
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Lexicon:
    """The words of each segment, with the segment's id and first row."""

    segments: list[tuple[int, int, str]]

    @property
    def nbytes(self) -> int:
        return sum(len(words) for _, _, words in self.segments)


def find_part(session: Session, dataset: Dataset, text: str) -> SearchHits:
    """Rows of which a text holds this one, in whichever case. Raises `BadInput` (`nothing_to_search`) for one without a
    letter or digit, and `SearchNotReady`."""
    wanted = text.strip().lower()
    words = list(_WORD.finditer(wanted))
    if not words:
        raise BadInput(
            f"{text.strip()!r} has no letter or digit to look for",
            code="nothing_to_search",
            hint="Add a part of a word next to it.",
        )
    owner = dataset.base_dataset_id or dataset.id
    state = usable_index(session, dataset)
    lexicon = _lexicon(session, owner, cached=state.ready)
    mask = np.ones(dataset.rows, np.bool_)
    exact = state.ready and words[0][0] == wanted
    for word in words:
        pattern = ("" if word.start() == 0 else "\n") + word[0] + ("" if word.end() == len(wanted) else "\n")
        likely = _words_like(lexicon, pattern)
        if likely is None:
            exact = False
        else:
            mask &= _rows_with(session, owner, dataset.rows, lexicon, pattern, likely, cached=state.ready)
    for first, rows in state.waiting:
        mask[first : first + rows] = True
    return SearchHits(mask, None if exact else partial(_holds, text=wanted))


def _holds(sample: dict[str, Any], text: str) -> bool:
    return any(text in whole.lower() for _, _, whole in texts_of(sample))


def _lexicon(session: Session, owner: uuid.UUID, *, cached: bool) -> Lexicon:
    def read() -> Lexicon:
        columns = SearchSegment.id, SearchSegment.first_row, SearchSegment.lexicon
        ready = select(*columns).where(SearchSegment.dataset_id == owner, SearchSegment.ready)
        return Lexicon([(id_, first, words or "\n") for id_, first, words in session.execute(ready)])

    return ARRAYS.get(("lexicon", owner), read) if cached else read()


def _words_like(lexicon: Lexicon, pattern: str) -> list[tuple[int, str]] | None:
    """(segment, word) of every word with the pattern, of which a line feed is an end of the word. None for more than
    `MOST_WORDS`."""
    likely: list[tuple[int, str]] = []
    for segment, _, words in lexicon.segments:
        for word in _lines_with(words, pattern):
            likely.append((segment, word))
            if len(likely) > MOST_WORDS:
                return None
    return likely


def _lines_with(words: str, pattern: str) -> Iterator[str]:
    at = words.find(pattern)
    while at >= 0:
        begin = at + 1 if pattern[0] == "\n" else words.rfind("\n", 0, at) + 1
        end = words.find("\n", begin)
        yield words[begin:end]
        at = words.find(pattern, end)


def _rows_with(
    session: Session,
    owner: uuid.UUID,
    rows: int,
    lexicon: Lexicon,
    pattern: str,
    words: list[tuple[int, str]],
    *,
    cached: bool,
) -> Mask:
    def read() -> np.ndarray[Any, np.dtype[np.uint8]]:
        mask = np.zeros(max(rows, 1) + SEGMENT_ROWS, np.bool_)
        firsts = {segment: first for segment, first, _ in lexicon.segments}
        for segment, packed in postings(session, words):
            mask[firsts[segment] + np.frombuffer(packed, ">u2").astype(np.int64)] = True
        return np.packbits(mask[:rows])

    bits = ARRAYS.get(("part", owner, pattern), read) if cached else read()
    return np.unpackbits(bits, count=rows).astype(np.bool_)
