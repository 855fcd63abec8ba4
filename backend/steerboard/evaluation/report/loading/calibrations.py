"""How often each judge prefers the side that is known to be better, on the pairs that it was calibrated on."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.calibration.service import same_judge
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.report.data import Floats, Ints, Verdicts
from steerboard.evaluation.report.sources import share, signs_of
from steerboard.evaluation.report.verdict_tables import PAIR_STYLES, pair_units, pair_values, score_units
from steerboard.evaluation.tables import CALIBRATION, Evaluation, EvaluationPrompt
from steerboard.runs.tables import Run
from steerboard_contracts.report.sections.judges import Calibration


def calibrations_of(
    session: Session, evaluation: Evaluation, judges: Sequence[Judge]
) -> dict[uuid.UUID, list[tuple[Evaluation, Judge]]]:
    """By judge: the finished calibrations of the same judge in this project, by age."""
    found = session.execute(
        select(Evaluation, Judge)
        .join(Judge, Judge.evaluation_id == Evaluation.id)
        .join(Run, Run.id == Judge.run_id)
        .where(
            Evaluation.project_id == evaluation.project_id,
            Evaluation.prompts_from["kind"].astext == CALIBRATION,
            Run.state == "succeeded",
        )
        .order_by(Judge.id)
    ).all()
    asked = [judge for judge in judges if judge.imported is None]
    return {judge.id: [(pairs, known) for pairs, known in found if same_judge(judge, known)] for judge in asked}


def accuracy(pairs: Evaluation, judge: Judge, verdicts: Verdicts, prompts: int) -> Calibration:
    """The share of pairs in which `chosen` (column 0) is preferred to `rejected`, ties 1/2."""
    if judge.style in PAIR_STYLES:
        signs = np.sign(pair_values(pair_units(verdicts, 2, judge.style), prompts, 2) - 0.5)
    else:
        signs = signs_of(score_units(verdicts, 2).items(prompts))
    rows: Ints = np.flatnonzero(np.isfinite(signs[:, 0]))
    points: Floats = (signs[rows, 0] + 1) / 2
    return Calibration(
        dataset=str(pairs.prompts_from["dataset"]),
        evaluation=pairs.name,
        pairs=prompts,
        accuracy=share(rows, points, seed=pairs.seed),
    )


def prompts_of(session: Session, evaluation: Evaluation) -> int:
    return len(
        session.scalars(select(EvaluationPrompt.position).where(EvaluationPrompt.evaluation_id == evaluation.id)).all()
    )
