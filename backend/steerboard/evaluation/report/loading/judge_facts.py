"""Reads what the quality of judges is measured by: repeated verdicts, costs and times, and who sits in a jury."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, Jury, RepeatedVerdict, Verdict
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.spending.budget import Prices
from steerboard.evaluation.judges.spending.costs import calibrations_by, cost_of, spent
from steerboard.evaluation.report.data import Floats, Ints, JudgeCost, JuryFacts, Repeats
from steerboard.evaluation.tables import Evaluation


def repeats_of(
    session: Session, judges: Sequence[Judge], rows_of: Callable[[Floats], Ints]
) -> dict[uuid.UUID, Repeats]:
    """The repeats of each judge that asked twice. `rows_of`: rows of positions, -1 for what is not a prompt."""
    first, again = Verdict, RepeatedVerdict
    repeats = session.execute(
        select(again.judge_id, again.position, first.value, again.value)
        .join(
            first,
            (first.judge_id == again.judge_id)
            & (first.position == again.position)
            & (first.turn == again.turn)
            & (first.a == again.a)
            & first.b.is_not_distinct_from(again.b)
            & (first.a_first.is_not_distinct_from(again.a_first)),
        )
        .where(
            again.judge_id.in_([judge.id for judge in judges]),
            ~first.superseded,
            first.status == "ok",
            again.status == "ok",
        )
        .order_by(again.judge_id, again.position, again.id)
    ).all()
    made = {}
    for judge in judges:
        table = np.array([row[1:] for row in repeats if row[0] == judge.id], dtype=np.float64).reshape(-1, 3)
        rows = rows_of(table[:, 0])
        known = rows >= 0
        if known.any():
            made[judge.id] = Repeats(rows[known], table[known, 1], table[known, 2])
    return made


def reviews_of(
    session: Session, judges: Sequence[Judge], rows_of: Callable[[Floats], Ints]
) -> dict[uuid.UUID, tuple[Repeats, int]]:
    """The imported reviews of two answers by judge: what those of both orders prefer, as signs of the same answer, and
    how many questions were reviewed in one order only. Of two reviews in one order the newer counts; a question one of
    whose orders cannot be used is neither."""
    imported = [judge.id for judge in judges if judge.imported is not None and judge.style == "multi"]
    reviews = session.execute(
        select(Verdict.judge_id, Verdict.position, Verdict.a, Verdict.a_first, Verdict.value)
        .where(Verdict.judge_id.in_(imported))
        .order_by(Verdict.judge_id, Verdict.position, Verdict.created_at, Verdict.id)
    )
    # {judge: {position: {entrant: {whether it was shown first: score, None if unusable}}}}
    scores: dict[uuid.UUID, dict[int, dict[uuid.UUID, dict[bool, float | None]]]] = {judge: {} for judge in imported}
    for judge, position, entrant, first, value in reviews:
        if first is not None:
            scores[judge].setdefault(position, {}).setdefault(entrant, {})[first] = value
    made = {}
    for judge, of_position in scores.items():
        both, alone = [], 0
        for position, of_entrant in of_position.items():
            if len(of_entrant) != 2:
                continue
            by_a, by_b = of_entrant.values()
            signs = [
                np.sign(left - right)
                for left, right in ((by_a.get(True), by_b.get(False)), (by_a.get(False), by_b.get(True)))
                if left is not None and right is not None
            ]
            if len(signs) == 2:
                both.append((position, *signs))
            elif len(by_a) == len(by_b) == len(signs) == 1:
                alone += 1
        table = np.array(both, dtype=np.float64).reshape(-1, 3)
        rows = rows_of(table[:, 0])
        known = rows >= 0
        made[judge] = Repeats(rows[known], table[known, 1], table[known, 2]), alone
    return made


def costs_of(session: Session, project_id: uuid.UUID, judges: Sequence[Judge]) -> dict[uuid.UUID, JudgeCost]:
    """The cost of every judge that is asked here."""
    ids = [judge.id for judge in judges]
    verdicts = _paid_verdicts(session, ids)
    times = (
        select(JudgeAnswer.judge_id, func.sum(JudgeAnswer.seconds).label("seconds"))
        .where(JudgeAnswer.judge_id.in_(ids))
        .group_by(JudgeAnswer.judge_id)
    )
    seconds = {row.judge_id: row.seconds for row in session.execute(times)}
    calibrating = calibrations_by(session, project_id, ids)
    made = {}
    for judge in judges:
        # The settings of an imported judge are someone else's.
        settings = JudgeSettings.model_validate(judge.settings) if judge.imported is None else None
        priced = settings is not None and Prices.of(settings) is not None
        made[judge.id] = JudgeCost(
            cost=spent(session, judge, settings) if priced and settings is not None else None,
            uncertain=judge.uncertain_cost,
            calibrations=cost_of(session, calibrating[judge.id]) if priced else None,
            verdicts=verdicts.get(judge.id, 0),
            seconds=seconds.get(judge.id),
        )
    return made


def juries_of(session: Session, evaluation: Evaluation) -> list[JuryFacts]:
    """The juries by age."""
    juries = session.scalars(select(Jury).where(Jury.evaluation_id == evaluation.id).order_by(Jury.id))
    return [
        JuryFacts(jury.name, tuple(map(uuid.UUID, jury.judges)), "majority" if jury.rule == "majority" else "mean")
        for jury in juries
    ]


def _paid_verdicts(session: Session, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Verdicts with a value, repeated ones too, from answers that the judge itself paid for."""
    counts = dict.fromkeys(ids, 0)
    for of in (Verdict, RepeatedVerdict):
        query = (
            select(of.judge_id, func.count())
            .join(JudgeAnswer, (JudgeAnswer.key == of.answer_key) & (JudgeAnswer.judge_id == of.judge_id))
            .where(of.judge_id.in_(ids), of.status == "ok")
            .group_by(of.judge_id)
        )
        for judge, number in session.execute(query if of is RepeatedVerdict else query.where(~Verdict.superseded)):
            counts[judge] += number
    return counts
