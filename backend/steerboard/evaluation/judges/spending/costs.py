"""What judges have cost so far, from the answers that they paid for."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.spending.budget import Prices


def spent(session: Session, judge: Judge, settings: JudgeSettings) -> float:
    """By the judge's prices, with the upper bound of what is uncertain; 0 without prices."""
    prices = Prices.of(settings)
    if prices is None:
        return 0.0
    sums = select(func.sum(JudgeAnswer.prompt_tokens), func.sum(JudgeAnswer.completion_tokens))
    # Of an answer without both counts the bound is among the uncertain costs.
    counted = JudgeAnswer.prompt_tokens.is_not(None) & JudgeAnswer.completion_tokens.is_not(None)
    tokens = session.execute(sums.where(JudgeAnswer.judge_id == judge.id, counted)).one()
    return prices.cost(int(tokens[0] or 0), int(tokens[1] or 0)) + judge.uncertain_cost
