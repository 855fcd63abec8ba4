"""The places of the database's rows in a report's arrays: prompts by row, entrants by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Subquery, func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.report.data import Floats, PromptFacts
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt


def prompt_facts(session: Session, evaluation: Evaluation) -> list[PromptFacts]:
    rows = session.execute(
        select(
            EvaluationPrompt.position,
            EvaluationPrompt.question_id,
            EvaluationPrompt.category,
            func.jsonb_array_length(EvaluationPrompt.follow_ups),
            EvaluationPrompt.seen,
        )
        .where(EvaluationPrompt.evaluation_id == evaluation.id)
        .order_by(EvaluationPrompt.position)
    )
    return [PromptFacts(position, name, category, 1 + more, seen) for position, name, category, more, seen in rows]


def places_of(evaluation: Evaluation) -> Subquery:
    """Each entrant with its column, so that rows carry small numbers and no ids."""
    place = func.row_number().over(order_by=(Entrant.position, Entrant.id)) - 1
    return select(Entrant.id, place.label("place")).where(Entrant.evaluation_id == evaluation.id).subquery()


def number_columns(rows: Sequence[Any], width: int) -> list[Floats]:
    """The columns of number rows, None as NaN."""
    if not rows:
        return [np.empty(0)] * width
    return list(np.array([tuple(row) for row in rows], dtype=np.float64).T)


def rows_by_position(rows: Mapping[int, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The row of each position as an array, -1 for one that is not a prompt; its last item is -1."""
    row_of = np.full(max(rows, default=-1) + 2, -1, dtype=np.int64)
    for position, row in rows.items():
        row_of[position] = row
    return row_of


def rows_at(row_of: np.ndarray[Any, np.dtype[np.int64]], positions: Floats) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows of positions; -1 for one that is not a prompt."""
    at = positions.astype(np.int64)
    return row_of[np.where((at >= 0) & (at < len(row_of)), at, len(row_of) - 1)]
