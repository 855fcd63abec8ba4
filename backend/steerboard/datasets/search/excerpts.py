"""The places where a row matches a search: a part of each text around its first hit, with the hits marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from steerboard.datasets.schemas import Excerpt, ExcerptPart, Match
from steerboard.datasets.search.tokens import phrases_of, texts_of, words_of

# So many characters of a long text come before the first hit.
_BEFORE = 16


def pattern_of(query: str, match: Match) -> re.Pattern[str] | None:
    """What is marked; None where the query looks for nothing."""
    if match == "part":
        wanted = [re.escape(query.strip())]
    else:
        # Longest first: a phrase is marked as a whole, not by its words.
        runs = sorted(
            [*(phrase.split() for phrase in phrases_of(query)), *([word] for word in words_of(query))], key=len
        )
        between = r"[\W_]+"
        wanted = [rf"(?<![^\W_]){between.join(map(re.escape, run))}(?![^\W_])" for run in reversed(runs)]
    return re.compile("|".join(wanted), re.IGNORECASE) if any(wanted) else None


def excerpts(sample: dict[str, Any], pattern: re.Pattern[str], characters: int) -> list[Excerpt]:
    """Each text with a hit, at most so many characters of it."""
    excerpts_ = []
    for field, turn, text in texts_of(sample):
        first = pattern.search(text)
        if first is not None:
            parts = list(_parts(text, first.start(), pattern, characters))
            excerpts_.append(Excerpt(field=field, turn=turn, parts=parts))
    return excerpts_


def _parts(text: str, first: int, pattern: re.Pattern[str], characters: int) -> Iterator[ExcerptPart]:
    begin = 0 if len(text) <= characters else max(0, first - _BEFORE)
    end = min(len(text), begin + characters)
    at = begin
    if begin > 0:
        yield ExcerptPart(text="…", hit=False)
    for hit in pattern.finditer(text, begin):
        if hit.start() >= end:
            break
        if hit.start() > at:
            yield ExcerptPart(text=text[at : hit.start()], hit=False)
        at = min(hit.end(), end)
        yield ExcerptPart(text=text[hit.start() : at], hit=True)
    if at < end:
        yield ExcerptPart(text=text[at:end], hit=False)
    if end < len(text):
        yield ExcerptPart(text="…", hit=False)
