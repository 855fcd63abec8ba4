"""What judges have cost so far, from the answers that they paid for. A judge and its calibrations have one budget."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.spending.budget import Prices
from steerboard.evaluation.tables import CALIBRATION, Evaluation
from steerboard.runs.tables import Run


def spent(session: Session, judge: Judge, settings: JudgeSettings) -> float:
    """The costs by the judge's prices, with the upper bound of what is uncertain or under way; 0 without prices."""
    prices = Prices.of(settings)
    if prices is None:
        return 0.0
    sums = select(func.sum(JudgeAnswer.prompt_tokens), func.sum(JudgeAnswer.completion_tokens))
    # An answer without both counts has its bound among the uncertain costs.
    counted = JudgeAnswer.prompt_tokens.is_not(None) & JudgeAnswer.completion_tokens.is_not(None)
    tokens = session.execute(sums.where(JudgeAnswer.judge_id == judge.id, counted)).one()
    return prices.cost(int(tokens[0] or 0), int(tokens[1] or 0)) + judge.uncertain_cost


def budget_holder(session: Session, judge: Judge) -> Judge:
    """Whose budget a judge spends: its own, or as a calibration that of the judge that is calibrated, while there is
    one."""
    run = session.get(Run, judge.run_id) if judge.run_id else None
    of = calibrated_judge(run) if run is not None else None
    return (session.get(Judge, of) if of is not None else None) or judge


def calibrated_judge(run: Run) -> uuid.UUID | None:
    """The judge that a judge's run calibrates, which may have been deleted."""
    of = run.config.get("calibrates")
    return uuid.UUID(of) if of is not None else None


def calibrations_by(
    session: Session, project_id: uuid.UUID, holders: Collection[uuid.UUID]
) -> dict[uuid.UUID, list[Judge]]:
    """The calibrations that spend each judge's budget, by age, as they are in the database now."""
    judges_by: dict[uuid.UUID, list[Judge]] = defaultdict(list)
    of = Run.config["calibrates"].astext
    rows = session.execute(
        select(of, Judge)
        .join(Run, Run.id == Judge.run_id)
        .join(Evaluation, Evaluation.id == Judge.evaluation_id)
        .where(
            Evaluation.project_id == project_id,
            Evaluation.prompts_from["kind"].astext == CALIBRATION,
            of.in_([str(holder) for holder in holders]),
        )
        .order_by(Judge.id)
        .execution_options(populate_existing=True)
    )
    for holder, judge in rows:
        judges_by[uuid.UUID(holder)].append(judge)
    return judges_by


def cost_of(session: Session, judges: Collection[Judge]) -> float:
    """What these have spent together."""
    return sum(spent(session, judge, JudgeSettings.model_validate(judge.settings)) for judge in judges)


def spent_of_budget(session: Session, project_id: uuid.UUID, holder: uuid.UUID) -> float:
    """The costs of a judge and its calibrations, what is set aside included. Others that would spend of it wait from
    here to the end of the transaction."""
    lock = select(Judge).where(Judge.id == holder).with_for_update(key_share=True)
    own = session.scalars(lock.execution_options(populate_existing=True)).all()
    return cost_of(session, [*own, *calibrations_by(session, project_id, [holder])[holder]])
