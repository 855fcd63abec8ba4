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
from steerboard.evaluation.items.selection import SourceSigns, counts_of, in_order, of_length, page_of, with_outcome
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
        of_report = EvaluationReportRow.evaluation_id == self.evaluation_id
        a, b = self._of_entrants(EvaluationReportRow.lengths, pair, of_report)
        return a, b

    @cached_property
    def scores(self) -> list[Floats]:
        """Scores of the answers of `a`, and of `b` where it was named, by the source: (prompts,) each. None of them
        without an entrant and a source."""
        if self.filters.a is None or self.filters.source is None:
            return []
        names = self.filters.pair or (self.filters.a,)
        place = ReportSource.place == self.place_of(self.filters.source)
        of_report = ReportSource.evaluation_id == self.evaluation_id
        return self._of_entrants(ReportSource.scores, names, of_report, place)

    def _of_entrants(
        self, column: InstrumentedAttribute[bytes], names: Sequence[str], *which: ColumnElement[bool]
    ) -> list[Floats]:
        """The parts of these entrants of a column of float64 by entrant and row: (prompts,) each."""
        size = len(self.positions) * _FLOAT_BYTES
        parts = (func.substr(column, self.column(name) * size + 1, size) for name in names)
        return [np.frombuffer(part, dtype="<f8") for part in self.session.execute(select(*parts).where(*which)).one()]

    @cached_property
    def ordered(self) -> Ints:
        """All rows in the order that is asked for."""
        if self.filters.sort == "position":
            return in_order(self.positions, None)
        keys = self.scores[0] - self.scores[1] if self.filters.sort.endswith("difference") else self.scores[0]
        return in_order(self.positions, -keys if self.filters.sort.startswith("-") else keys)

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
    def fitting(self) -> Bools:
        """Rows of the items that fit."""
        others: list[int] = []
        if self.filters.other is not None:
            others = [self.place_of(self.filters.other)]
        elif self.filters.outcome == "disagree":
            chosen = None if self.chosen is None else self.chosen.source
            others = [place for place, source in enumerate(self.sources) if source.valid and source != chosen]
        with_it = with_outcome(self.filters.outcome, self.chosen, self.signs_of(others), len(self.positions))
        return with_it & self.among

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

    def row_at(self, position: int) -> int | None:
        row = int(np.searchsorted(self.positions, position))
        return row if row < len(self.positions) and self.positions[row] == position else None

    def place_behind(self, position: int) -> int:
        """The place in the order that follows the row of a position; 0 for -1."""
        if position < 0:
            return 0
        row = self.row_at(position)
        return len(self.positions) if row is None else int(np.flatnonzero(self.ordered == row)[0]) + 1

    def outcomes_at(self, row: int | None) -> list[SourceOutcome]:
        """The outcomes of every source that compares the pair there; none without a pair."""
        if row is None:
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
    """Items that fit, in their order. Raises `NotFound` (`unknown_entrant`, `unknown_source`)."""
    items = items_of(session, evaluation_id, filters)
    shown, more = page_of(items.ordered, items.fitting, items.place_behind(after), limit)
    pair = filters.pair is not None
    return ItemPage(
        version=items.version,
        total=int(items.fitting.sum()),
        counts=counts_of(items.chosen, items.among) if pair and items.chosen is not None else None,
        sources=items.sources,
        items=_items_out(items, shown),
        next=int(items.positions[shown[-1]]) if more else None,
    )


def _items_out(items: Items, shown: Ints) -> list[ItemOut]:
    positions = items.positions[shown].tolist()
    last = func.left(EvaluationPrompt.messages[-1]["content"].astext, _TEXT)
    columns = EvaluationPrompt.position, EvaluationPrompt.question_id, EvaluationPrompt.category, last
    prompts = items.session.execute(
        select(*columns).where(
            EvaluationPrompt.evaluation_id == items.evaluation_id, EvaluationPrompt.position.in_(positions)
        )
    )
    texts = {row.position: row for row in prompts}
    lengths = items.lengths if items.filters.pair is not None else ()
    listed = []
    for row, position in zip(shown.tolist(), positions, strict=True):
        _, question_id, category, text = texts[position]
        listed.append(
            ItemOut(
                position=position,
                question_id=question_id,
                category=category,
                text=text or "",
                lengths=_values_at(lengths, row),
                scores=_values_at(items.scores, row),
                outcomes=items.outcomes_at(row),
            )
        )
    return listed


def _values_at(values: Sequence[Floats], row: int) -> list[float | None]:
    return [float(of[row]) if np.isfinite(of[row]) else None for of in values]


def _of_pair(column: InstrumentedAttribute[Any], pair: int, prompts: int) -> ColumnElement[bytes]:
    return func.substr(column, pair * prompts + 1, prompts)
