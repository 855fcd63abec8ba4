"""What the texts of answers say of themselves, entrant by entrant, so that only those of one are in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Subquery, Text, func, select, type_coerce
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from steerboard.evaluation.report.data import TextFacts
from steerboard.evaluation.tables import Response
from steerboard_statistics.texts.diversity import distinct_share, plain_words, repeats_itself

# Characters of a turn that are read. One that repeats itself does so long before.
MOST_CHARACTERS = 20_000
_AT_ONCE = 500


def text_facts(session: Session, places: Subquery, entrants: int) -> list[TextFacts]:
    """The facts of each entrant's answers, by its column."""
    facts = [TextFacts()] * entrants
    for column, rows in groupby(_turns(session, places), key=itemgetter(0)):
        answers = [(position, sample, [turn.strip() for turn in turns or ()]) for _, position, sample, turns in rows]
        facts[column] = _facts(answers)
    return facts


def _turns(session: Session, places: Subquery) -> Iterator[Any]:
    """(column, position, sample, turns), by column."""
    turn = func.jsonb_array_elements_text(Response.turns).table_valued("value", with_ordinality="n").alias("turn")
    starts = func.array_agg(func.left(turn.c.value, MOST_CHARACTERS))
    query = (
        select(
            *(places.c.place, Response.position, Response.sample),
            type_coerce(select(starts).scalar_subquery(), ARRAY(Text)),
        )
        .join(places, places.c.id == Response.entrant_id)
        .order_by(places.c.place, Response.position, Response.sample)
    )
    yield from session.execute(query, execution_options={"yield_per": _AT_ONCE})


def _facts(answers: list[tuple[int, int, list[str]]]) -> TextFacts:
    """(position, sample, turns) of each answer, without the blanks around a turn."""
    positions: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for position, _, turns in answers:
        positions[tuple(turns)].add(position)
    known: dict[str, str] = {}
    first: list[list[str]] = []
    empty = repeated = 0
    for _, sample, turns in answers:
        # One string for all occurrences of a word.
        in_words = [[known.setdefault(word, word) for word in plain_words(turn)] for turn in turns]
        if sample == 0:
            first += in_words
        if not all(turns):
            empty += 1
        elif len(positions[tuple(turns)]) > 1 or any(map(repeats_itself, in_words)):
            repeated += 1
    return TextFacts(
        answers=len(answers),
        empty=empty,
        repeated=repeated,
        distinct_1=distinct_share(first, 1),
        distinct_2=distinct_share(first, 2),
    )
