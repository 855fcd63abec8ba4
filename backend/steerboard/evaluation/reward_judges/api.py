"""Judges that may reward the answers of a run, for those who choose one."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Depends, Query
from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.judges.calibrations import calibrations_of
from steerboard.evaluation.reward_judges.launch import doubt_about, worst_of
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.paging import Page, paginate
from steerboard_contracts.online.judge_reward import ALONE, GROUPWISE, JudgeReward
from steerboard_contracts.report.sections.judges import Calibration

router = Router(prefix="/reward-judges", tags=["evaluations"])

_MIN_ACCURACY = float(JudgeReward.model_fields["min_accuracy"].default)


class RewardJudgeOut(BaseModel):
    """`name` is what a rule of the kind `judge` names. `calibration`: the one that decides. `doubt`: why the launch is
    refused unless the rule has `uncalibrated` or another `min_accuracy`; null where it is not."""

    id: uuid.UUID
    name: str
    style: Literal["single", "rubric", "multi", "pairwise"]
    model: str
    calibration: Calibration | None
    doubt: str | None


@router.get("")
def list_reward_judges(
    session: Db,
    access: Annotated[Access, Depends(AccessTo("read"))],
    name: Annotated[str | None, Query(max_length=250, description="A part of `EVALUATION/JUDGE`.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Page[RewardJudgeOut]:
    """The newest first: judges with an endpoint, of a style that rates or ranks answers without a baseline."""
    project = access.project.id
    full_name = func.concat(Evaluation.name, "/", Judge.name)
    statement = (
        select(Judge)
        .join(Evaluation, Evaluation.id == Judge.evaluation_id)
        .where(Evaluation.project_id == project)
        .where(Judge.endpoint_id.is_not(None), Judge.style.in_((*ALONE, *GROUPWISE)))
    )
    if name:
        statement = statement.where(full_name.icontains(name, autoescape=True))

    def shown(judges: Sequence[Judge]) -> list[RewardJudgeOut]:
        return _shown(session, project, judges)

    return paginate(
        session, statement, Judge.id, lambda judge: shown([judge])[0], cursor=cursor, limit=limit, convert_all=shown
    )


def _shown(session: Session, project_id: uuid.UUID, judges: Sequence[Judge]) -> list[RewardJudgeOut]:
    ids = {judge.evaluation_id for judge in judges}
    rows = session.execute(select(Evaluation.id, Evaluation.name).where(Evaluation.id.in_(ids)))
    names = {row.id: row.name for row in rows}
    calibrations = calibrations_of(session, project_id, judges)
    return [
        RewardJudgeOut.model_validate(
            {
                "id": judge.id,
                "name": f"{names[judge.evaluation_id]}/{judge.name}",
                "style": judge.style,
                "model": judge.model,
                "calibration": worst_of(calibrations[judge.id]),
                "doubt": doubt_about(judge, calibrations[judge.id], _MIN_ACCURACY),
            }
        )
        for judge in judges
    ]
