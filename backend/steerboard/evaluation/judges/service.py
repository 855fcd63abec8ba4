"""Judges of an evaluation: who is asked, in which style, what it costs, and its results. Callers commit."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import InUse, NameTaken
from steerboard.evaluation.entrants.service import family_of
from steerboard.evaluation.judges import comparisons, styles
from steerboard.evaluation.judges import queries as reading
from steerboard.evaluation.judges.checks import check_who, checked, judged_entrants
from steerboard.evaluation.judges.requests import key_of
from steerboard.evaluation.judges.schemas import JudgeEstimate, JudgeIn, JudgeOut, JudgeRun, JudgeSettings
from steerboard.evaluation.recipe_runs import RecipeStage, child_of
from steerboard.evaluation.tables import Entrant, Evaluation, Judge, JudgeAnswer, Verdict
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.platform.names import find, free_name, names_like
from steerboard.registry.endpoints.service import get_endpoint
from steerboard.registry.service import get_model
from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.inputs import AFTER
from steerboard.runs.state import lifecycle
from steerboard.runs.state.lifecycle import InputRef, create_run
from steerboard.runs.state.states import ENDED
from steerboard.runs.tables import Run
from steerboard_contracts.configs import CompareConfig, JudgeConfig
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.models import what_to_name
from steerboard_statistics.validity import assess

_BROKEN = ("failed", "cancelled")


def judges_of(session: Session, evaluation: Evaluation) -> Sequence[Judge]:
    """By age."""
    return session.scalars(select(Judge).where(Judge.evaluation_id == evaluation.id).order_by(Judge.id)).all()


def get_judge(session: Session, evaluation: Evaluation, ref: str) -> Judge:
    """By id or name. Raises `NotFound` (`unknown_judge`)."""
    mine = select(Judge).where(Judge.evaluation_id == evaluation.id)
    judge = find(session, mine, Judge.id, Judge.name, ref)
    if judge is None:
        known = ", ".join(one.name for one in judges_of(session, evaluation))
        raise NotFound(
            f"evaluation {evaluation.name!r} has no judge {ref!r}; it has {known or 'none'}", code="unknown_judge"
        )
    return judge


def create_judge(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    asked: JudgeIn,
    actor: str,
    stage: RecipeStage | None = None,
) -> Judge:
    """A judge, and the run in which it is asked; it waits for answers that are still being made. For a recipe's
    `stage` that run is one of the stage's.

    Raises `InvalidJudge`, `NotFound`, `NameTaken`, `BadInput` (`wrong_role`).
    """
    who = _who(session, project, asked)
    judged = checked(session, evaluation, asked)
    model = who.name if isinstance(who, Model) else who.model
    judge = Judge(
        evaluation_id=evaluation.id,
        name=asked.name or _free_name(session, evaluation, f"{who.name[:100]}-{asked.style}"),
        style=asked.style,
        model=model,
        family=asked.family or family_of(model),
        endpoint_id=None if isinstance(who, Model) else who.id,
        model_id=who.id if isinstance(who, Model) else None,
        content_hash=who.artifact_hash if isinstance(who, Model) else None,
        settings=asked.settings.model_dump(mode="json"),
        created_by=actor,
    )
    if _taken(session, evaluation, judge.name):
        raise NameTaken(f"there is already a judge {judge.name!r}", hint="Give it another `name`.")
    session.add(judge)
    session.flush()
    pool = asked.pool or evaluation.pool or "default"
    _start(session, project, evaluation, judge, judged, pool, actor, stage)
    return judge


def estimate(session: Session, project: Project, evaluation: Evaluation, asked: JudgeIn) -> JudgeEstimate:
    """What it would ask, were all answers there, and how much of that is known already. Raises like `create_judge`."""
    who = _who(session, project, asked)
    checked(session, evaluation, asked)
    material = reading.material_of(session, evaluation, asked.settings, assume=True)
    if isinstance(who, Model):
        return JudgeEstimate(requests=2 * sum(1 for _ in comparisons.pairs(material, asked.settings)), cached=0)
    keys = [
        key_of(who.base_url, question.body)
        for question in styles.questions(asked.style, asked.settings, who.model, material)
    ]
    different = set(keys)
    paid = len(different) - reading.answered(session, project.id, different)
    return JudgeEstimate(requests=len(keys), cached=len(keys) - paid)


def _who(session: Session, project: Project, asked: JudgeIn) -> Endpoint | Model:
    check_who(asked)
    if asked.model is None:
        return get_endpoint(session, project, asked.endpoint or "")
    model = get_model(session, project, asked.model)
    if model.role != "preference":
        raise BadInput(
            f"{model.name!r} is a model of role {model.role}, and was not trained to compare answers",
            code="wrong_role",
            errors=[ErrorLocation(location="body.model", message=f"is a model of role {model.role}")],
            hint=what_to_name(model.role, ("preference",)),
        )
    return model


def retry(session: Session, project: Project, evaluation: Evaluation, judge: Judge, actor: str) -> None:
    """Ask again what ended in an error, and what was not asked yet; verdicts stay.

    Raises `BadInput` (`imported_judge`) and `Conflict` (`judge_at_work`).
    """
    if (judge.endpoint_id is None and judge.model_id is None) or judge.imported is not None:
        raise BadInput(
            f"judge {judge.name!r} has no endpoint or model that could be asked",
            code="imported_judge",
            hint="Import the judgments again, or add a judge with an endpoint or a preference model.",
        )
    run = session.get(Run, judge.run_id) if judge.run_id else None
    if run is not None and run.state not in ENDED:
        raise Conflict(f"judge {judge.name!r} is at work", code="judge_at_work", hint="Wait for its run to end.")
    if run is not None and run.state in _BROKEN and run.reason_code not in ("upstream_failed", "upstream_cancelled"):
        lifecycle.resume(session, run, actor)
        return
    settings = JudgeSettings.model_validate(judge.settings)
    pool = run.pool if run is not None else evaluation.pool or "default"
    _start(session, project, evaluation, judge, judged_entrants(session, evaluation, settings), pool, actor)


def delete_judge(session: Session, judge: Judge) -> None:
    """With its verdicts; answers that were paid for stay. Raises `InUse` while its run is under way."""
    run = session.get(Run, judge.run_id) if judge.run_id else None
    if run is not None and run.state not in ENDED:
        raise InUse(f"judge {judge.name!r} is at work", hint="Cancel its run first.")
    session.delete(judge)
    session.flush()


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
    run_ids = {judge.run_id for judge in judges if judge.run_id}
    runs = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(run_ids)))}
    endpoint_ids = {judge.endpoint_id for judge in judges if judge.endpoint_id}
    rows = session.execute(select(Endpoint.id, Endpoint.name).where(Endpoint.id.in_(endpoint_ids)))
    endpoints = {row.id: row.name for row in rows}
    return [
        _out(
            judge,
            statuses[judge.id],
            paid.get(judge.id),
            cached.get(judge.id, 0),
            runs.get(judge.run_id) if judge.run_id else None,
            endpoints.get(judge.endpoint_id) if judge.endpoint_id else None,
        )
        for judge in judges
    ]


def _out(
    judge: Judge, statuses: dict[str, int], paid: Any, cached: int, run: Run | None, endpoint: str | None
) -> JudgeOut:
    silent = {name: statuses.get(name, 0) for name in ("unparsed", "refused", "error")}
    verdicts = statuses.get("ok", 0) + sum(silent.values())
    lost = {**silent, "unreadable": judge.unreadable}
    threshold = judge.settings.get("unparsed_threshold", JudgeSettings().unparsed_threshold)
    validity, any_verdict = assess(statuses.get("ok", 0), lost, threshold, what="verdicts"), verdicts > 0
    return JudgeOut.model_validate(
        {
            "id": judge.id,
            "name": judge.name,
            "style": judge.style,
            "model": judge.model,
            "family": judge.family,
            "endpoint": endpoint,
            "model_id": judge.model_id,
            "settings": judge.settings,
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
            "valid": validity.valid or not any_verdict,
            "prompt_tokens": paid.prompt_tokens if paid else None,
            "completion_tokens": paid.completion_tokens if paid else None,
            "requests": paid.requests if paid else 0,
            "cached": cached,
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


def _start(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    judge: Judge,
    judged: Sequence[Entrant],
    pool: str,
    actor: str,
    stage: RecipeStage | None = None,
) -> None:
    """The run, which waits for those of answers that are under way."""
    making = [session.get(Run, one.run_id) for one in judged if one.run_id]
    waits_for = [run.id for run in making if run is not None and run.state not in ENDED]
    config: JudgeConfig | CompareConfig = JudgeConfig(evaluation=evaluation.id, judge=judge.id)
    inputs = {f"{AFTER}{number}": InputRef(run=id_) for number, id_ in enumerate(waits_for)}
    if judge.model_id is not None:
        config = CompareConfig(evaluation=evaluation.id, judge=judge.id)
        inputs["judge"] = InputRef(model=judge.model_id)
    named: dict[str, Any] = {"name": f"{evaluation.name}.{judge.name}"[:128], **child_of(stage, judge.name)}
    run = create_run(
        session,
        project,
        **named,
        config=config,
        inputs=inputs,
        pool=pool,
        reuse=False,
        created_by=actor,
    )
    judge.run_id = run.id
    session.flush()


def _free_name(session: Session, evaluation: Evaluation, name: str) -> str:
    return free_name(name, names_like(session, Judge.name, name, Judge.evaluation_id == evaluation.id))


def _taken(session: Session, evaluation: Evaluation, name: str) -> bool:
    taken = select(Judge.id).where(Judge.evaluation_id == evaluation.id, Judge.name == name)
    return session.scalar(taken) is not None
