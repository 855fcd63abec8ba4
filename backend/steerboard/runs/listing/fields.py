"""What a list of runs can be filtered and sorted by: fields of the run itself, and the facts of a project's runs."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Float, cast
from sqlalchemy.orm import InstrumentedAttribute, Session

from steerboard.platform.filters.errors import BadFilter
from steerboard.platform.filters.expression import Word
from steerboard.runs.facts.names import SOURCES, FactName, all_names, find_names
from steerboard.runs.facts.tables import RunFact, Source
from steerboard.runs.tables import Run
from steerboard_contracts.metric_direction import better

Kind = Literal["name", "text", "choice", "number", "duration", "time", "tag", "notes", "is", "has"]
Aggregate = Literal["last", "min", "max", "best"]


@dataclass(frozen=True)
class RunField:
    """A field that every run has. `column`: what it is compared and sorted by, where that is a column."""

    name: str
    kind: Kind
    about: str
    column: ColumnElement[Any] | InstrumentedAttribute[Any] | None = None
    sortable: bool = False


DURATION = Run.ended_at - Run.started_at
DEVICE_SECONDS = Run.device_seconds + Run.failed_device_seconds

RUN_FIELDS: dict[str, RunField] = {
    field.name: field
    for field in (
        RunField("name", "name", "name of the run, or PIPELINE.STAGE", Run.name, sortable=True),
        RunField("pipeline", "text", "name of its pipeline"),
        RunField("state", "choice", "its state", Run.state, sortable=True),
        RunField("kind", "choice", "run kind or training method", Run.kind, sortable=True),
        RunField("method", "text", "training method", Run.method),
        RunField("reason", "text", "reason code, such as out_of_memory", Run.reason_code),
        RunField("by", "text", "who started it", Run.created_by),
        RunField("pool", "text", "worker pool", Run.pool),
        RunField("created", "time", "when it was started", Run.created_at, sortable=True),
        RunField("ended", "time", "when it ended", Run.ended_at),
        RunField("duration", "duration", "from its first attempt to its end", DURATION, sortable=True),
        RunField("device_seconds", "number", "device-seconds, of failed attempts too", DEVICE_SECONDS, sortable=True),
        RunField("attempts", "number", "attempts", cast(Run.attempt, Float)),
        RunField("priority", "number", "priority in the queue", cast(Run.priority, Float)),
        RunField("tag", "tag", "one of its tags"),
        RunField("notes", "notes", "its notes"),
        RunField("is", "is", "archived, favourite, reused or single"),
        RunField("has", "has", "notes, tags, warnings or pipeline"),
    )
}


@dataclass(frozen=True)
class FactField:
    """A setting, metric or result. `value`: the column of `RunFact` that is compared."""

    source: Source
    key: str
    name: str
    value: Literal["number", "low", "high"] = "number"
    numbers: bool = True
    words: bool = False

    @property
    def column(self) -> InstrumentedAttribute[float | None]:
        return {"number": RunFact.number, "low": RunFact.low, "high": RunFact.high}[self.value]


Field = RunField | FactField


class Fields:
    """The fields of one project."""

    def __init__(self, session: Session, project: uuid.UUID) -> None:
        self._session = session
        self.project = project

    @cached_property
    def facts(self) -> list[FactName]:
        return all_names(self._session, self.project)

    def find(self, name: Word, what: str = "filter") -> Field:
        """The field by its name, such as `state`, `lr`, `metric.eval_loss` or `eval_loss.min`. A run's own field goes
        first, then settings, metrics, results. Raises `BadFilter` with the nearest names."""
        if name.text in RUN_FIELDS:
            return RUN_FIELDS[name.text]
        source, key = _source_of(name.text)
        base, aggregate = _aggregate_of(key)
        facts = find_names(self._session, self.project, [key, base])
        fits = [fact for fact in facts if source in (None, fact.source)]
        exact = [fact for fact in fits if fact.key == key]
        if exact:
            return _field(min(exact, key=_rank), name)
        of_metric = next((fact for fact in fits if fact.source == "metric"), None) if aggregate else None
        if of_metric is None:
            near = self.nearest(name.text)
            raise BadFilter.at_word(
                f"no run has a field `{name.text}`" + (f"; did you mean `{near[0]}`?" if near else ""),
                name,
                what=what,
                suggestions=near,
                hint="Quote a word to search for it; `steerboard runs columns` lists the fields.",
            )
        return _field(of_metric, name, aggregate, what)

    def nearest(self, name: str) -> list[str]:
        """Names that are like this one, three at most."""
        plain = [fact.key for fact in self.facts]
        known = dict.fromkeys([*RUN_FIELDS, *plain, *(f"{fact.source}.{fact.key}" for fact in self.facts)])
        return nearest(name, known)


def nearest(word: str, known: Iterable[str]) -> list[str]:
    by_lower = {name.lower(): name for name in known if len(name) <= 100}
    matches = difflib.get_close_matches(word.lower()[:100], by_lower, n=3, cutoff=0.6)
    return [by_lower[name] for name in matches]


def _source_of(name: str) -> tuple[Source | None, str]:
    for source in SOURCES:
        if name.startswith(f"{source}.") and len(name) > len(source) + 1:
            return source, name[len(source) + 1 :]
    return None, name


def _aggregate_of(key: str) -> tuple[str, Aggregate | None]:
    base, _, last = key.rpartition(".")
    return (base, last) if base and last in get_args(Aggregate) else (key, None)  # type: ignore[return-value]


def _rank(fact: FactName) -> int:
    return SOURCES.index(fact.source)


def _field(fact: FactName, name: Word, aggregate: Aggregate | None = None, what: str = "filter") -> FactField:
    value: Literal["number", "low", "high"] = "number"
    if aggregate == "best":
        way = better(fact.key)
        if way is None:
            raise BadFilter.at_word(
                f"it is not known whether `{fact.key}` is better low or high",
                name,
                what=what,
                suggestions=[f"{fact.key}.min", f"{fact.key}.max"],
                hint=f"Write `{fact.key}.min` or `{fact.key}.max`.",
            )
        value = way
    elif aggregate == "min":
        value = "low"
    elif aggregate == "max":
        value = "high"
    return FactField(fact.source, fact.key, name.text, value, fact.numbers, fact.words)
