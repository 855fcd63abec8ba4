"""The orders of a list of runs, each read from an index. Runs without the value that sorts them come last, the newest
first."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, literal, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from steerboard.platform.filters.errors import BadFilter
from steerboard.platform.filters.expression import Word
from steerboard.runs.facts.tables import RunFact
from steerboard.runs.listing.fields import FactField, Fields, RunField
from steerboard.runs.tables import Run

NEWEST = "-created"


@dataclass(frozen=True)
class Stretch:
    """A part of a list that one statement reads: (run, what sorts it). `value`: null for the newest first."""

    statement: Select[Any]
    value: ColumnElement[Any] | InstrumentedAttribute[Any] | None
    id: InstrumentedAttribute[uuid.UUID]
    descending: bool

    def after(self, last: tuple[Any, uuid.UUID] | None) -> Select[Any]:
        """The rows in order, from behind a value and id."""
        statement = self.statement
        if self.value is None:
            if last is not None:
                statement = statement.where(self.id < last[1])
            return statement.order_by(self.id.desc())
        key = tuple_(self.value, self.id)
        if last is not None:
            limit = tuple_(literal(self._typed(last[0]), self.value.type), literal(last[1], self.id.type))
            statement = statement.where(key < limit if self.descending else key > limit)
        columns = (self.value, self.id)
        return statement.order_by(*(column.desc() if self.descending else column.asc() for column in columns))

    def _typed(self, plain: Any) -> Any:
        """A value of a cursor, which JSON has as a number or a text. Raises `ValueError`, `TypeError`."""
        assert self.value is not None
        wanted = self.value.type.python_type
        if wanted is dt.timedelta:
            return dt.timedelta(seconds=plain)
        if wanted is uuid.UUID:
            return uuid.UUID(plain)
        return wanted(plain)


def stretches(fields: Fields, sort: str, runs: Select[Any]) -> list[Stretch]:
    """`sort`: a field, with `-` before it for the highest first. `runs`: those that are listed. Raises `BadFilter`."""
    descending = sort.startswith("-")
    name = sort.removeprefix("-")
    if name == "created":
        return [Stretch(runs, None, Run.id, True) if descending else _oldest(runs)]
    word = Word(name, int(descending), max(1, len(name)))
    field = fields.find(word, "sort")
    if isinstance(field, RunField):
        if not field.sortable or field.column is None:
            raise BadFilter.at_word(f"runs cannot be sorted by `{name}`", word, what="sort")
        with_value = runs.add_columns(field.column.label("sorted_by")).where(field.column.is_not(None))
        lacking = [Stretch(runs.where(field.column.is_(None)), None, Run.id, True)] if name == "duration" else []
        return [Stretch(with_value, field.column, Run.id, descending), *lacking]
    return _by_fact(field, runs, descending)


def _oldest(runs: Select[Any]) -> Stretch:
    return Stretch(runs.add_columns(Run.id.label("sorted_by")), Run.id, Run.id, False)


def _by_fact(field: FactField, runs: Select[Any], descending: bool) -> list[Stretch]:
    conditions = (RunFact.source == field.source, RunFact.key == field.key)
    parts = []
    columns: list[Any] = [field.column] if field.numbers else []
    if field.words and field.value == "number":
        columns.append(RunFact.word)
    for column in columns:
        of_fact = runs.add_columns(column.label("sorted_by")).join(RunFact, RunFact.run_id == Run.id)
        with_value = of_fact.where(RunFact.project_id == Run.project_id, *conditions, column.is_not(None))
        parts.append(Stretch(with_value, column, RunFact.run_id, descending))
    has = exists(select(RunFact.run_id).where(RunFact.run_id == Run.id, *conditions))
    return [*parts, Stretch(runs.where(~has), None, Run.id, True)]
