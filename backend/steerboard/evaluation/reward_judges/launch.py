"""Which judge a run's rule names, and whether its word may be a reward."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.judges.calibrations import calibrations_of, uncalibrated
from steerboard.evaluation.judges.service import get_judge
from steerboard.evaluation.lookup import get_evaluation
from steerboard.platform.http.errors import NotFound
from steerboard.registry.tables import Endpoint
from steerboard_contracts.errors import BadInput
from steerboard_contracts.online.judge_reward import ALONE, GROUPWISE, JudgeReward, PinnedJudge
from steerboard_contracts.pinned_endpoint import PinnedEndpoint
from steerboard_contracts.report.sections.judges import Calibration


class JudgeNotCalibrated(BadInput):
    """A judge would reward answers without having shown that it agrees with people."""

    code = "judge_not_calibrated"
    title = "The judge is not calibrated"


def reward_judge(session: Session, project: Project, rule: JudgeReward) -> PinnedJudge:
    """The judge of a rule as it is now.

    Raises `BadInput` (`unknown_judge`, `imported_judge`, `wrong_style`, `unknown_endpoint`) and `JudgeNotCalibrated`.
    """
    evaluation, _, name = rule.judge.partition("/")
    try:
        judge = get_judge(session, get_evaluation(session, project, evaluation), name)
    except NotFound as error:
        raise BadInput(error.detail, code="unknown_judge", hint="Name it as `EVALUATION/JUDGE`.") from error
    endpoint = _endpoint_of(session, judge)
    calibrations = calibrations_of(session, project.id, [judge])[judge.id]
    doubt = doubt_about(judge, calibrations, rule.min_accuracy)
    if doubt is not None and not rule.uncalibrated:
        raise JudgeNotCalibrated(
            f"judge `{rule.judge}` may not reward answers: {doubt}",
            hint="Calibrate it on pairs that people have ranked (`steerboard evaluations calibrate "
            f"{evaluation} {name} --dataset PAIRS`), lower `min_accuracy`, or set `uncalibrated: true` to "
            "train on it all the same",
        )
    worst = worst_of(calibrations)
    return PinnedJudge.model_validate(
        {
            "id": judge.id,
            "style": judge.style,
            "endpoint": PinnedEndpoint(id=endpoint.id, base_url=endpoint.base_url, model=judge.model),
            "settings": judge.settings,
            "calibrated_on": worst.dataset if worst else None,
            "accuracy": worst.accuracy.value if worst else None,
            "accuracy_low": worst.accuracy.low if worst else None,
            "doubt": doubt,
        }
    )


def _endpoint_of(session: Session, judge: Judge) -> Endpoint:
    if judge.imported is not None or judge.endpoint_id is None:
        endpoint = None
    else:
        endpoint = session.get(Endpoint, judge.endpoint_id)
    if endpoint is None:
        raise BadInput(
            f"judge `{judge.name}` has no endpoint to ask",
            code="imported_judge",
            hint="Add a judge with an endpoint. A reward model of the project is the input `reward`.",
        )
    if judge.style not in (*ALONE, *GROUPWISE):
        raise BadInput(
            f"judge `{judge.name}` has the style {judge.style}, which compares with a baseline",
            code="wrong_style",
            hint=f"Take a judge of style {', '.join((*ALONE, *GROUPWISE))}.",
        )
    return endpoint


def doubt_about(judge: Judge, calibrations: Sequence[Calibration], min_accuracy: float) -> str | None:
    """Why the judge should not reward answers; None where it agrees with people often enough."""
    return uncalibrated({**judge.settings, "calibration_threshold": min_accuracy}, calibrations)


def worst_of(calibrations: Sequence[Calibration]) -> Calibration | None:
    """The calibration that decides: the one with the lowest interval."""
    known = [each for each in calibrations if each.accuracy.low is not None]
    return min(known, key=lambda each: each.accuracy.low or 0.0, default=None)
