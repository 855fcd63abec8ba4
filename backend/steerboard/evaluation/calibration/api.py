"""Calibrations over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.calibration.schemas import CalibrationIn, CalibrationOut
from steerboard.evaluation.calibration.service import calibrate
from steerboard.evaluation.judges.presenters import judges_out
from steerboard.evaluation.judges.service import get_judge
from steerboard.evaluation.lookup import get_evaluation
from steerboard.platform.http.errors import problems

router = Router(prefix="/evaluations/{evaluation}/judges/{judge}/calibrations", tags=["evaluations"])

Run = Annotated[Access, Depends(AccessTo("run"))]


@router.post("", status_code=201, responses=problems(400, 404))
def calibrate_judge(evaluation: str, judge: str, body: CalibrationIn, session: Db, access: Run) -> CalibrationOut:
    """Ask a judge about pairs whose better side is known. The pairs become an evaluation, once for all judges; asking
    again about the same pairs costs nothing."""
    judge_row = get_judge(session, get_evaluation(session, access.project, evaluation), judge)
    pairs, calibrated = calibrate(session, access.project, judge_row, body, access.actor)
    detail = {"dataset": body.dataset, "limit": body.limit}
    audit(session, access, "judge.calibrate", f"judge {judge_row.name} {judge_row.id} on {pairs.name}", detail)
    (shown,) = judges_out(session, pairs, calibrated)
    return CalibrationOut(evaluation_id=pairs.id, evaluation=pairs.name, judge=shown)
