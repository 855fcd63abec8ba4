"""Rows of the list of runs, with their tags and the values of the columns that were asked for."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from operator import attrgetter

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from steerboard.marks.service import marks_of
from steerboard.platform.filters.expression import Word
from steerboard.runs import queries
from steerboard.runs.facts.tables import RunFact
from steerboard.runs.listing.fields import FactField, Field, Fields
from steerboard.runs.listing.key_metrics import key_metrics
from steerboard.runs.listing.schemas import RunRow
from steerboard.runs.tables import Run

Value = float | str | None

# The length of notes in a list; all of them are on the run's page.
_SHOWN = 200


def columns_of(fields: Fields, names: Sequence[str]) -> dict[str, Field]:
    """Raises `BadFilter` for one that no run has."""
    return {name: fields.find(Word(name, 0, len(name)), "column") for name in dict.fromkeys(names)}


def rows_of(session: Session, owner: str, runs: Sequence[Run], columns: dict[str, Field]) -> list[RunRow]:
    marks = marks_of(session, owner, [run.id for run in runs])
    key = key_metrics(session, runs)
    rows = []
    summaries = queries.summaries(session, runs)
    for run, summary, values in zip(runs, summaries, values_of(session, runs, columns), strict=True):
        own = marks[run.id]
        if len(own.notes) > _SHOWN:
            own = own.model_copy(update={"notes": f"{own.notes[: _SHOWN - 1]}…"})
        rows.append(RunRow(**summary.model_dump(), marks=own, key_metric=key.get(run.id), values=values))
    return rows


def values_of(session: Session, runs: Sequence[Run], columns: dict[str, Field]) -> list[dict[str, Value]]:
    """The values of each run by column, None where it has none."""
    facts = _facts(session, runs, [field for field in columns.values() if isinstance(field, FactField)])
    return [{name: _value(run, field, facts) for name, field in columns.items()} for run in runs]


def _facts(
    session: Session, runs: Sequence[Run], fields: Sequence[FactField]
) -> dict[tuple[uuid.UUID, str, str], RunFact]:
    if not fields or not runs:
        return {}
    wanted = or_(*((RunFact.source == field.source) & (RunFact.key == field.key) for field in fields))
    facts = session.scalars(select(RunFact).where(RunFact.run_id.in_([run.id for run in runs]), wanted))
    return {(fact.run_id, fact.source, fact.key): fact for fact in facts}


def _value(run: Run, field: Field, facts: dict[tuple[uuid.UUID, str, str], RunFact]) -> Value:
    if isinstance(field, FactField):
        fact = facts.get((run.id, field.source, field.key))
        if fact is None:
            return None
        number: float | None = getattr(fact, field.value)
        return number if number is not None else fact.word
    value = _OF_RUN[field.name](run) if field.name in _OF_RUN else None
    return value.isoformat() if isinstance(value, dt.datetime) else value


def _duration(run: Run) -> float | None:
    return (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None


_OF_RUN: dict[str, Callable[[Run], Value | dt.datetime]] = {
    "name": attrgetter("name"),
    "state": attrgetter("state"),
    "kind": attrgetter("kind"),
    "method": attrgetter("method"),
    "reason": attrgetter("reason_code"),
    "by": attrgetter("created_by"),
    "pool": attrgetter("pool"),
    "created": attrgetter("created_at"),
    "ended": attrgetter("ended_at"),
    "duration": _duration,
    "device_seconds": lambda run: run.device_seconds + run.failed_device_seconds,
    "attempts": attrgetter("attempt"),
    "priority": attrgetter("priority"),
}
