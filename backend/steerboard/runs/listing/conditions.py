"""A filter as a condition in SQL. No condition is ever null: what a run lacks makes a comparison false."""

from __future__ import annotations

import datetime as dt
import operator
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, not_, or_, select, true
from sqlalchemy.orm import Session

from steerboard.marks.service import is_archived
from steerboard.marks.tables import Favourite, ItemMarks
from steerboard.platform.few_ids import among
from steerboard.platform.filters.errors import BadFilter
from steerboard.platform.filters.expression import (
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    Negation,
    Operator,
    Search,
    Word,
)
from steerboard.runs.facts.tables import RunFact
from steerboard.runs.facts.words import runs_with
from steerboard.runs.listing import values
from steerboard.runs.listing.fields import FactField, Fields, RunField
from steerboard.runs.tables import RUN_STATES, Pipeline, Run
from steerboard_contracts.run_kinds import all_kinds

Condition = ColumnElement[bool]

_COMPARED: dict[Operator, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    ":": operator.eq,
}
_IS = ("archived", "favourite", "reused", "single")
_HAS = ("notes", "tags", "warnings", "pipeline")


@dataclass(frozen=True)
class Asker:
    """The person that a filter is for: `owner` of favourites, and the time that ages count from."""

    owner: str
    now: dt.datetime


class Conditions:
    """Conditions of one project's filters."""

    def __init__(self, session: Session, project: uuid.UUID, asker: Asker) -> None:
        self._session = session
        self._project = project
        self._asker = asker
        self.fields = Fields(session, project)

    def of(self, expression: Expression) -> Condition:
        """Raises `BadFilter`."""
        match expression:
            case Conjunction(parts):
                return and_(*(self.of(part) for part in parts))
            case Disjunction(parts):
                return or_(*(self.of(part) for part in parts))
            case Negation(of):
                return not_(self.of(of))
            case Search(word):
                return runs_with(self._session, word.text)
            case Comparison(name, sign, given):
                field = self.fields.find(name)
                negated = sign == "!="
                each = [self._compared(field, name, "=" if negated else sign, value) for value in given]
                if not negated:
                    return or_(*each)
                return and_(self._has(field), not_(or_(*each)))

    def _compared(self, field: RunField | FactField, name: Word, sign: Operator, value: Word) -> Condition:
        if isinstance(field, FactField):
            return self._fact(field, name, sign, value)
        if field.kind in ("number", "duration", "time"):
            return self._measured(field, name, sign, value)
        if sign in ("<", "<=", ">", ">="):
            raise BadFilter.at_word(
                f"`{name.text}` has no order", name, hint="Compare it with = or !=, or with ~ for a part of it."
            )
        if field.kind == "tag":
            return self._tag(sign, value)
        if field.kind == "notes":
            return self._marked(ItemMarks.notes.icontains(value.text, autoescape=True))
        if field.kind == "is":
            return self._is(values.one_of(name, value, _IS))
        if field.kind == "has":
            return self._has_some(values.one_of(name, value, _HAS))
        if field.kind == "choice":
            return self._choice(field, name, sign, value)
        return self._text(field, sign, value)

    def _has(self, field: RunField | FactField) -> Condition:
        """Whether a run has a value that could be another one."""
        if isinstance(field, FactField):
            return self._facts(field, RunFact.number.is_not(None) | RunFact.word.is_not(None))
        if field.name == "pipeline":
            return Run.pipeline_id.is_not(None)
        return field.column.is_not(None) if field.column is not None else true()

    def _fact(self, field: FactField, name: Word, sign: Operator, value: Word) -> Condition:
        number = values.as_number(value)
        if sign == "~" or (sign == ":" and number is None):
            return self._facts(field, RunFact.word.icontains(value.text, autoescape=True))
        if sign in ("=", ":"):
            equal: Condition = RunFact.word == value.text
            return self._facts(field, equal if number is None else or_(operator.eq(field.column, number), equal))
        if not field.numbers:
            raise BadFilter.at_word(f"`{name.text}` is a text, which has no order", name)
        return self._facts(field, _COMPARED[sign](field.column, values.number(name, value)))

    def _facts(self, field: FactField, condition: Condition) -> Condition:
        in_field = (RunFact.project_id == self._project, RunFact.source == field.source, RunFact.key == field.key)
        return among(self._session, Run.id, select(RunFact.run_id).where(*in_field, condition))

    def _measured(self, field: RunField, name: Word, sign: Operator, value: Word) -> Condition:
        assert field.column is not None
        if sign == "~":
            raise BadFilter.at_word(f"`{name.text}` is no text", name, hint="Compare it with = != < <= > or >=.")
        limit: object
        if field.kind == "number":
            limit = values.number(name, value)
        elif field.kind == "duration":
            limit = values.duration(name, value)
        else:
            limit = values.time(name, value, self._asker.now)
        return and_(field.column.is_not(None), _COMPARED[sign](field.column, limit))

    def _choice(self, field: RunField, name: Word, sign: Operator, value: Word) -> Condition:
        part = sign == "~"
        if field.name == "state":
            if part:
                return Run.state.icontains(value.text, autoescape=True)
            return Run.state == values.one_of(name, value, RUN_STATES)
        if part:
            like = or_(*(column.icontains(value.text, autoescape=True) for column in (Run.kind, Run.method)))
            return func.coalesce(like, false())
        kinds = {known.run for known in all_kinds()} | {known.method for known in all_kinds() if known.method}
        chosen = values.one_of(name, value, sorted(kinds))
        return or_(Run.kind == chosen, and_(Run.method.is_not(None), Run.method == chosen))

    def _text(self, field: RunField, sign: Operator, value: Word) -> Condition:
        part = sign in (":", "~")
        if field.name == "pipeline":
            named = select(Pipeline.id).where(Pipeline.project_id == self._project, _like(Pipeline.name, value, part))
            return and_(Run.pipeline_id.is_not(None), Run.pipeline_id.in_(named))
        assert field.column is not None
        if field.name == "name" and "." in value.text:
            whole = Pipeline.name + "." + Run.name
            of_stage = (
                select(Run.id)
                .join(Pipeline, Pipeline.id == Run.pipeline_id)
                .where(Run.project_id == self._project, _like(whole, value, part))
                .correlate(None)
            )
            return or_(_like(field.column, value, part), Run.id.in_(of_stage))
        return and_(field.column.is_not(None), _like(field.column, value, part))

    def _tag(self, sign: Operator, value: Word) -> Condition:
        if sign != "~":
            return self._marked(ItemMarks.tags.contains([value.text]))
        return self._marked(func.array_to_string(ItemMarks.tags, "\n").icontains(value.text, autoescape=True))

    def _marked(self, condition: Condition) -> Condition:
        of_runs = (ItemMarks.project_id == self._project, ItemMarks.type == "run")
        return among(self._session, Run.id, select(ItemMarks.item_id).where(*of_runs, condition))

    def _is(self, what: str) -> Condition:
        if what == "archived":
            return is_archived(Run.id)
        if what == "favourite":
            of_asker = Favourite.owner == self._asker.owner
            favourites = (of_asker, Favourite.type == "run", Favourite.project_id == self._project)
            return among(self._session, Run.id, select(Favourite.item_id).where(*favourites))
        return Run.reused_from_id.is_not(None) if what == "reused" else Run.pipeline_id.is_(None)

    def _has_some(self, what: str) -> Condition:
        if what == "notes":
            return self._marked(ItemMarks.notes != "")
        if what == "tags":
            return self._marked(func.cardinality(ItemMarks.tags) > 0)
        return func.jsonb_array_length(Run.warnings) > 0 if what == "warnings" else Run.pipeline_id.is_not(None)


def mentions_archive(expression: Expression | None) -> bool:
    """Whether a filter itself decides about archived runs."""
    match expression:
        case Conjunction(parts) | Disjunction(parts):
            return any(map(mentions_archive, parts))
        case Negation(of):
            return mentions_archive(of)
        case Comparison(name, _, given):
            return name.text == "is" and any(value.text == "archived" for value in given)
    return False


def _like(column: ColumnElement[Any] | Any, value: Word, part: bool) -> Condition:
    condition: Condition = column.icontains(value.text, autoescape=True) if part else column == value.text
    return condition
