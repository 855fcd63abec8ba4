"""Verdicts of judges as arrays."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
from sqlalchemy import Subquery, func, select
from sqlalchemy.orm import Session
from sqlalchemy.types import Integer

from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.report.data import Floats, Verdicts
from steerboard.evaluation.report.loading.positions import places_of, prompt_facts, rows_at, rows_by_position
from steerboard.evaluation.tables import Evaluation


def verdicts_of(session: Session, evaluation: Evaluation, judge: Judge) -> Verdicts:
    """The verdicts of one judge, in rows of prompts and columns of entrants by position."""
    row_of = rows_by_position({prompt.position: row for row, prompt in enumerate(prompt_facts(session, evaluation))})
    (verdicts,) = verdicts_by_judge(session, {judge.id: 0}, places_of(evaluation), row_of)
    return verdicts


def verdicts_by_judge(
    session: Session,
    number: dict[uuid.UUID, int],
    places: Subquery,
    row_of: np.ndarray[Any, np.dtype[np.int64]],
) -> list[Verdicts]:
    """The verdicts of each judge by its number, in the order of items."""
    a, b = places.alias("a"), places.alias("b")
    columns: list[Floats] = []
    of: list[int] = []
    # One query a judge keeps its rows apart without an id in each of them; there are few judges.
    for judge_id, place in number.items():
        rows = session.execute(
            select(
                Verdict.position,
                Verdict.turn,
                a.c.place,
                func.coalesce(b.c.place, -1),
                func.coalesce(func.cast(Verdict.a_first, Integer), -1),
                Verdict.value,
                Verdict.weight,
                func.cast(Verdict.status == "ok", Integer),
            )
            .join(a, a.c.id == Verdict.a)
            .outerjoin(b, b.c.id == Verdict.b)
            .where(Verdict.judge_id == judge_id, ~Verdict.superseded)
            .order_by(Verdict.position, Verdict.id)
        ).all()
        columns.append(np.array([tuple(row) for row in rows], dtype=np.float64).reshape(-1, 8))
        of.append(place)
    made: list[Verdicts] = [_as_verdicts(table, row_of) for table in columns]
    return [made[of.index(place)] for place in range(len(number))]


def _as_verdicts(table: Floats, row_of: np.ndarray[Any, np.dtype[np.int64]]) -> Verdicts:
    row = rows_at(row_of, table[:, 0])
    kept = row >= 0
    table, row = table[kept], row[kept]
    ok = (table[:, 7] == 1) & np.isfinite(table[:, 5])
    whole = table[:, [1, 2, 3, 4, 6]].astype(np.int64)
    return Verdicts(
        row=row,
        turn=whole[:, 0],
        a=whole[:, 1],
        b=whole[:, 2],
        a_first=whole[:, 3],
        value=np.where(ok, table[:, 5], np.nan),
        weight=whole[:, 4],
        ok=ok,
    )
