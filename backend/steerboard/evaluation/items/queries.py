"""Items of the report that is kept: which fit, and a page of them. Reads the part of the pairs that are asked for."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from steerboard.evaluation.items.filters import ItemFilters
from steerboard.evaluation.items.schemas import ItemOut, ItemPage, ItemSource, SourceOutcome
from steerboard.evaluation.items.selection import SourceSigns, counts_of, of_length, page_of, with_outcome
from steerboard.evaluation.report.data import Bools, Floats, Ints
from steerboard.evaluation.report.pair_outcomes import unpacked
from steerboard.evaluation.report.sources import pair_columns
from steerboard.evaluation.tables import EvaluationPrompt, EvaluationReportRow, ReportSource
from steerboard.platform.http.errors import NotFound

_TEXT = 300
_FLOAT_BYTES = 8
_SIGNS = (ReportSource.signs, ReportSource.flips)


@dataclass(frozen=True)
class Items:
    """The items of a kept report, under some filters. Rows are prompts, in the order of `positions`."""

    session: Session
    evaluation_id: uuid.UUID
    filters: ItemFilters
    version: int
    entrants: list[str]
    positions: Ints

    @cached_property
    def columns(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.entrants)}

    @cached_property
    def sources(self) -> list[ItemSource]:
        """Every source of the report, in its order."""
        rows = self.session.execute(
            select(ReportSource.by, ReportSource.source, ReportSource.valid)
            .where(ReportSource.evaluation_id == self.evaluation_id)
            .order_by(ReportSource.place)
        )
        return [ItemSource(by=by, source=source, valid=valid) for by, source, valid in rows]

    def signs_of(self, places: Sequence[int]) -> list[SourceSigns]:
        """Sources by their place, on the pair; without one, on the pairs of `a`, or on all."""
        first, second = pair_columns(len(self.entrants))
        pairs = np.arange(len(first))
        turn = np.zeros(len(first), dtype=np.bool_)
        a, b = (None if name is None else self.column(name) for name in (self.filters.a, self.filters.b))
        if a is not None:
            of_a = (first == a) | (second == a) if b is None else (first == min(a, b)) & (second == max(a, b))
            pairs, turn = pairs[of_a], second[of_a] == a
        size = len(self.positions)
        slices = [_of_pair(column, int(pairs[0]), size) if b is not None else column for column in _SIGNS]
        rows = self.session.execute(
            select(ReportSource.place, *slices)
            .where(ReportSource.evaluation_id == self.evaluation_id, ReportSource.place.in_(places))
            .order_by(ReportSource.place)
        )
        read = []
        for place, *packed in rows:
            signs, flips = (None if part is None else unpacked(part, size) for part in packed)
            assert signs is not None
            if b is None:
                signs, flips = signs[pairs], None if flips is None else flips[pairs]
            read.append(SourceSigns(self.sources[place], signs, flips).turned(turn))
        return read

    @cached_property
    def of_pair(self) -> list[SourceSigns]:
        """Every source on the pair; none without a pair."""
        return self.signs_of(range(len(self.sources))) if self.filters.pair is not None else []

    @cached_property
    def lengths(self) -> tuple[Floats, Floats]:
        """Characters of the answers of `a` and `b`: (prompts,) each."""
        pair = self.filters.pair
        assert pair is not None
        size = len(self.positions) * _FLOAT_BYTES
        parts = (func.substr(EvaluationReportRow.lengths, self.column(name) * size + 1, size) for name in pair)
        a, b = self.session.execute(select(*parts).where(EvaluationReportRow.evaluation_id == self.evaluation_id)).one()
        return np.frombuffer(a, dtype="<f8"), np.frombuffer(b, dtype="<f8")

    @cached_property
    def chosen(self) -> SourceSigns | None:
        """The source that items are filtered by."""
        return None if self.filters.source is None else self.signs_of([self.place_of(self.filters.source)])[0]

    @cached_property
    def among(self) -> Bools:
        """Rows of the category and the length."""
        fits = np.ones(len(self.positions), dtype=np.bool_)
        if self.filters.category is not None:
            with_category = self.session.scalars(
                select(EvaluationPrompt.position).where(
                    EvaluationPrompt.evaluation_id == self.evaluation_id,
                    EvaluationPrompt.category == self.filters.category,
                )
            ).all()
            fits &= np.isin(self.positions, np.array(with_category, dtype=np.int64))
        if self.filters.length is not None:
            fits &= of_length(self.filters.length, *self.lengths)
        return fits

    @cached_property
    def fitting(self) -> Ints:
        """Positions of the items that fit, ascending."""
        others: list[int] = []
        if self.filters.other is not None:
            others = [self.place_of(self.filters.other)]
        elif self.filters.outcome == "disagree":
            chosen = None if self.chosen is None else self.chosen.source
            others = [place for place, source in enumerate(self.sources) if source.valid and source != chosen]
        with_it = with_outcome(self.filters.outcome, self.chosen, self.signs_of(others), len(self.positions))
        return self.positions[with_it & self.among]

    def column(self, name: str) -> int:
        """Raises `NotFound` (`unknown_entrant`)."""
        if name not in self.columns:
            known = ", ".join(self.entrants) or "none"
            raise NotFound(f"the report has no entrant {name!r}; it has {known}", code="unknown_entrant")
        return self.columns[name]

    def place_of(self, name: str) -> int:
        """Raises `NotFound` (`unknown_source`)."""
        named = {f"{source.by}:{source.source}": place for place, source in enumerate(self.sources)}
        if name not in named:
            known = ", ".join(named) or "none"
            raise NotFound(f"the report has no source {name!r}; it has {known}", code="unknown_source")
        return named[name]

    def outcomes_at(self, position: int) -> list[SourceOutcome]:
        """The outcomes of every source that compares the pair there; none without a pair."""
        row = int(np.searchsorted(self.positions, position))
        if row == len(self.positions) or self.positions[row] != position:
            return []
        outcomes = [source.outcome_at(row) for source in self.of_pair]
        return [outcome for outcome in outcomes if outcome is not None]


def items_of(session: Session, evaluation_id: uuid.UUID, filters: ItemFilters) -> Items:
    """Items of the kept report. Raises `NotFound` (`unknown_evaluation`) when it was deleted meanwhile."""
    kept = session.execute(
        select(EvaluationReportRow.version, EvaluationReportRow.entrants, EvaluationReportRow.positions).where(
            EvaluationReportRow.evaluation_id == evaluation_id
        )
    ).one_or_none()
    if kept is None:
        raise NotFound("the evaluation was deleted meanwhile", code="unknown_evaluation")
    positions = np.frombuffer(kept.positions, dtype="<i4").astype(np.int64)
    return Items(session, evaluation_id, filters, kept.version, kept.entrants, positions)


def page(session: Session, evaluation_id: uuid.UUID, filters: ItemFilters, *, after: int, limit: int) -> ItemPage:
    """Items that fit, by position. Raises `NotFound` (`unknown_entrant`, `unknown_source`)."""
    items = items_of(session, evaluation_id, filters)
    shown, more = page_of(items.fitting, after, limit)
    pair = filters.pair is not None
    return ItemPage(
        version=items.version,
        total=len(items.fitting),
        counts=counts_of(items.chosen, items.among) if pair and items.chosen is not None else None,
        sources=items.sources,
        items=_items_out(items, shown),
        next=int(shown[-1]) if more else None,
    )


def _items_out(items: Items, shown: Ints) -> list[ItemOut]:
    last = func.left(EvaluationPrompt.messages[-1]["content"].astext, _TEXT)
    prompts = items.session.execute(
        select(EvaluationPrompt.position, EvaluationPrompt.question_id, EvaluationPrompt.category, last)
        .where(
            EvaluationPrompt.evaluation_id == items.evaluation_id,
            EvaluationPrompt.position.in_(shown.tolist()),
        )
        .order_by(EvaluationPrompt.position)
    )
    return [
        ItemOut(
            position=position,
            question_id=question_id,
            category=category,
            text=text or "",
            lengths=_lengths_at(items, position),
            outcomes=items.outcomes_at(position),
        )
        for position, question_id, category, text in prompts
    ]


def _lengths_at(items: Items, position: int) -> list[float | None]:
    if items.filters.pair is None:
        return []
    row = int(np.searchsorted(items.positions, position))
    return [float(of[row]) if np.isfinite(of[row]) else None for of in items.lengths]


def _of_pair(column: InstrumentedAttribute[Any], pair: int, prompts: int) -> ColumnElement[bytes]:
    return func.substr(column, pair * prompts + 1, prompts)
