"""The names of a project's settings, metrics and results, read from the index without touching every run."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from steerboard.runs.facts.tables import Source

SOURCES: tuple[Source, ...] = ("setting", "metric", "result")

_HAS = "EXISTS (SELECT FROM run_facts WHERE project_id = :project AND source = s AND key = k AND {value} IS NOT NULL)"
_ONES = text(
    f"""
    SELECT s AS source, k AS key, {_HAS.format(value="number")} AS numbers, {_HAS.format(value="word")} AS words
    FROM unnest(CAST(:sources AS text[])) s CROSS JOIN unnest(CAST(:keys AS text[])) k
    """
)
# From one name to the next in the index.
_NEXT = (
    "SELECT key FROM run_facts WHERE project_id = :project AND source = :source AND {value} IS NOT NULL {after}"
    " ORDER BY key LIMIT 1"
)


def _all(value: str) -> str:
    first, following = _NEXT.format(value=value, after=""), _NEXT.format(value=value, after="AND key > listed.key")
    return f"""
        WITH RECURSIVE listed AS (
            ({first}) UNION ALL SELECT ({following}) FROM listed WHERE listed.key IS NOT NULL
        ) SELECT key FROM listed WHERE key IS NOT NULL LIMIT {_MOST}
    """


_MOST = 2_000
_EVERY = {value: text(_all(value)) for value in ("number", "word")}


@dataclass(frozen=True)
class FactName:
    """`numbers` and `words`: which of both some run has under this name."""

    source: Source
    key: str
    numbers: bool
    words: bool


def find_names(session: Session, project: uuid.UUID, keys: Sequence[str]) -> list[FactName]:
    """The keys that some run has, under each source."""
    rows = session.execute(_ONES, {"project": project, "sources": list(SOURCES), "keys": list(keys)})
    return [FactName(*row) for row in rows if row.numbers or row.words]


def all_names(session: Session, project: uuid.UUID) -> list[FactName]:
    """Every name, by source and then in order."""
    names = []
    for source in SOURCES:
        by = {
            value: set(session.scalars(statement, {"project": project, "source": source}))
            for value, statement in _EVERY.items()
        }
        every = sorted(by["number"] | by["word"])
        names += [FactName(source, key, key in by["number"], key in by["word"]) for key in every]
    return names
