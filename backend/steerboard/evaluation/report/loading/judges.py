"""The facts about each judge that a report is made of."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Subquery, func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, Verdict
from steerboard.evaluation.judges.calibrations import calibrations_of
from steerboard.evaluation.report.data import JudgeFacts
from steerboard.evaluation.report.loading.judge_facts import costs_of, repeats_of, reviews_of
from steerboard.evaluation.report.loading.positions import rows_at
from steerboard.evaluation.report.loading.verdicts import verdicts_by_judge
from steerboard.evaluation.tables import Evaluation
from steerboard.runs.tables import Run
from steerboard_contracts.online.judge_reward import judge_identity


def judges_of(
    session: Session, evaluation: Evaluation, places: Subquery, row_of: np.ndarray[Any, np.dtype[np.int64]]
) -> list[JudgeFacts]:
    judges = session.execute(
        select(Judge, Run.state)
        .outerjoin(Run, Run.id == Judge.run_id)
        .where(Judge.evaluation_id == evaluation.id)
        .order_by(Judge.id)
    ).all()
    if not judges:
        return []
    of_these = Verdict.judge_id.in_([judge.id for judge, _ in judges])
    number = {judge.id: place for place, (judge, _) in enumerate(judges)}
    counts: dict[uuid.UUID, dict[str, int]] = {judge.id: {} for judge, _ in judges}
    for judge_id, status, superseded, n in session.execute(
        select(Verdict.judge_id, Verdict.status, Verdict.superseded, func.count())
        .where(of_these)
        .group_by(Verdict.judge_id, Verdict.status, Verdict.superseded)
    ):
        name = "superseded" if superseded else status
        counts[judge_id][name] = counts[judge_id].get(name, 0) + n
    verdicts = verdicts_by_judge(session, number, places, row_of)
    rows = [judge for judge, _ in judges]
    repeats = repeats_of(session, rows, lambda positions: rows_at(row_of, positions))
    reviews = reviews_of(session, rows, lambda positions: rows_at(row_of, positions))
    costs = costs_of(session, evaluation.project_id, rows)
    calibrated = calibrations_of(session, evaluation.project_id, rows)
    tokens = _tokens(session, list(number))
    return [
        JudgeFacts(
            id=judge.id,
            name=judge.name,
            style=judge.style,
            model=judge.model,
            family=judge.family,
            identity=_identity(judge),
            settings=judge.settings,
            imported=judge.imported is not None,
            state=state or ("imported" if judge.imported is not None else "pending"),
            prompt_tokens=tokens.get(judge.id, (None, None))[0],
            completion_tokens=tokens.get(judge.id, (None, None))[1],
            statuses=counts[judge.id],
            verdicts=verdicts[number[judge.id]],
            unreadable=judge.unreadable,
            unordered=judge.unordered,
            repeats=repeats.get(judge.id),
            reversed_reviews=reviews.get(judge.id, (None, 0))[0],
            one_order=reviews.get(judge.id, (None, 0))[1],
            calibrations=tuple(calibrated.get(judge.id, ())),
            cost=costs[judge.id],
        )
        for judge, state in judges
    ]


def _identity(judge: Judge) -> str | None:
    if judge.endpoint_id is None:
        return judge.content_hash
    return judge_identity(judge.endpoint_id, judge.model)


def _tokens(session: Session, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[int | None, int | None]]:
    """What each judge paid for; a stored answer cost it nothing."""
    rows = session.execute(
        select(JudgeAnswer.judge_id, func.sum(JudgeAnswer.prompt_tokens), func.sum(JudgeAnswer.completion_tokens))
        .where(JudgeAnswer.judge_id.in_(ids))
        .group_by(JudgeAnswer.judge_id)
    )
    return {
        judge: (None if prompt is None else int(prompt), None if two is None else int(two))
        for judge, prompt, two in rows
        if judge is not None
    }
