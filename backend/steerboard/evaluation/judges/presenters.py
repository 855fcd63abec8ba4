"""Judges as the API shows them: counts of verdicts, costs, and the runs that ask them."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, Verdict
from steerboard.evaluation.judges.calibrations import calibrations_of, uncalibrated
from steerboard.evaluation.judges.schemas import JudgeOut, JudgeRun, JudgeSettings, VerdictOut
from steerboard.evaluation.judges.service import judges_of
from steerboard.evaluation.judges.spending.budget import Prices
from steerboard.evaluation.judges.spending.costs import budget_holder, calibrations_by, cost_of, spent
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.row_sizes import ROW_BYTES, shown_part, weight
from steerboard.registry.tables import Endpoint
from steerboard.runs.tables import Run
from steerboard_statistics.validity import assess


def judges_out(session: Session, evaluation: Evaluation, only: Judge | None = None) -> list[JudgeOut]:
    """All of them by age, or one."""
    judges = [only] if only is not None else judges_of(session, evaluation)
    ids = [judge.id for judge in judges]
    if not ids:
        return []
    statuses: dict[uuid.UUID, dict[str, int]] = defaultdict(dict)
    kind = case((Verdict.superseded, "superseded"), else_=Verdict.status)
    for judge_id, status, count in session.execute(
        select(Verdict.judge_id, kind, func.count()).where(Verdict.judge_id.in_(ids)).group_by(Verdict.judge_id, kind)
    ):
        statuses[judge_id][status] = count
    paid = {
        row.judge_id: row
        for row in session.execute(
            select(
                JudgeAnswer.judge_id,
                func.count().label("requests"),
                func.sum(JudgeAnswer.prompt_tokens).label("prompt_tokens"),
                func.sum(JudgeAnswer.completion_tokens).label("completion_tokens"),
            )
            .where(JudgeAnswer.judge_id.in_(ids))
            .group_by(JudgeAnswer.judge_id)
        )
    }
    cached = _cached(session, evaluation, ids)
    strict = [judge for judge in judges if judge.settings.get("calibration_threshold") is not None]
    calibrations = calibrations_of(session, evaluation.project_id, strict)
    calibrating = calibrations_by(session, evaluation.project_id, ids)
    run_ids = {judge.run_id for judge in judges if judge.run_id}
    runs = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(run_ids)))}
    endpoint_ids = {judge.endpoint_id for judge in judges if judge.endpoint_id}
    rows = session.execute(select(Endpoint.id, Endpoint.name).where(Endpoint.id.in_(endpoint_ids)))
    endpoints = {row.id: row.name for row in rows}
    return [
        _out(
            judge,
            _costs(session, judge, calibrating[judge.id]),
            budget_holder(session, judge),
            uncalibrated(judge.settings, calibrations.get(judge.id, ())),
            statuses[judge.id],
            paid.get(judge.id),
            cached.get(judge.id, 0),
            runs.get(judge.run_id) if judge.run_id else None,
            endpoints.get(judge.endpoint_id) if judge.endpoint_id else None,
        )
        for judge in judges
    ]


def verdict_out(row: Verdict, names: Mapping[uuid.UUID, str]) -> VerdictOut:
    """`names`: of the entrants."""
    fields = ("id", "position", "turn", "a_first", "value", "weight", "status", "raw", "detail", "superseded")
    given = {name: getattr(row, name) for name in fields}
    cut = weight(row.raw) > ROW_BYTES
    if cut:
        given |= shown_part({"raw": row.raw})
    b = names[row.b] if row.b is not None else None
    return VerdictOut(a=names[row.a], b=b, created_at=row.created_at, cut=cut, **given)


def _costs(session: Session, judge: Judge, calibrations: Sequence[Judge]) -> tuple[float | None, float | None]:
    """Its own and its calibrations', both None without prices."""
    settings = JudgeSettings.model_validate(judge.settings)
    if Prices.of(settings) is None:
        return None, None
    return spent(session, judge, settings), cost_of(session, calibrations)


def _out(
    judge: Judge,
    costs: tuple[float | None, float | None],
    holder: Judge,
    not_calibrated: str | None,
    statuses: dict[str, int],
    paid: Any,
    cached: int,
    run: Run | None,
    endpoint: str | None,
) -> JudgeOut:
    silent = {name: statuses.get(name, 0) for name in ("unparsed", "refused", "error")}
    verdicts = statuses.get("ok", 0) + sum(silent.values())
    lost = {**silent, "unreadable": judge.unreadable}
    threshold = judge.settings.get("unparsed_threshold", JudgeSettings().unparsed_threshold)
    validity, any_verdict = assess(statuses.get("ok", 0), lost, threshold, what="verdicts"), verdicts > 0
    # As in the report, which gives no reason for a judge without verdicts.
    why = (validity.reason or not_calibrated) if any_verdict else None
    return JudgeOut.model_validate(
        {
            "id": judge.id,
            "name": judge.name,
            "style": judge.style,
            "model": judge.model,
            "family": judge.family,
            "endpoint": endpoint,
            "model_id": judge.model_id,
            "settings": judge.settings
            if holder is judge
            else judge.settings | {"budget": holder.settings.get("budget")},
            "imported": judge.imported,
            "state": run.state if run is not None else "succeeded",
            "run": JudgeRun(id=run.id, state=run.state, reason=run.reason) if run is not None else None,
            "verdicts": verdicts,
            "ok": statuses.get("ok", 0),
            "unparsed": silent["unparsed"],
            "refused": silent["refused"],
            "errors": silent["error"],
            "superseded": statuses.get("superseded", 0),
            "unparsed_rate": validity.rate if any_verdict else None,
            "valid": why is None,
            "invalid_because": why,
            "prompt_tokens": paid.prompt_tokens if paid else None,
            "completion_tokens": paid.completion_tokens if paid else None,
            "requests": paid.requests if paid else 0,
            "cached": cached,
            "cost": costs[0],
            "uncertain_cost": judge.uncertain_cost,
            "calibration_cost": costs[1],
            "failures": judge.failures or {},
            "created_by": judge.created_by,
            "created_at": judge.created_at,
        }
    )


def _cached(session: Session, evaluation: Evaluation, ids: list[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Questions that are answered, less those answers that the judge itself has paid for."""
    # All rows of a multi question are one question.
    entrant = case((Judge.style == "multi", None), else_=func.concat(Verdict.a, Verdict.b, Verdict.a_first))
    question = func.concat_ws("|", Verdict.position, Verdict.turn, Verdict.answer_key, entrant)
    rows = session.execute(
        select(
            Verdict.judge_id,
            (
                func.count(question.distinct())
                - func.count(Verdict.answer_key.distinct()).filter(JudgeAnswer.judge_id == Verdict.judge_id)
            ).label("cached"),
        )
        .join(Judge, Judge.id == Verdict.judge_id)
        .join(
            JudgeAnswer,
            (JudgeAnswer.project_id == evaluation.project_id) & (JudgeAnswer.key == Verdict.answer_key),
        )
        .where(Verdict.judge_id.in_(ids), ~Verdict.superseded)
        .group_by(Verdict.judge_id)
    )
    return {row.judge_id: row.cached for row in rows}
