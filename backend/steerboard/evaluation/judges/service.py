"""Judges of an evaluation: which model judges, in which style, what it costs, and its results. Callers commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import InUse, NameTaken
from steerboard.evaluation.entrants.service import family_of
from steerboard.evaluation.judge_tables import Judge, Jury
from steerboard.evaluation.judges import comparisons, styles
from steerboard.evaluation.judges import queries as reading
from steerboard.evaluation.judges.checks import InvalidJudge, check_who, checked, judged_entrants
from steerboard.evaluation.judges.requests import Question, key_of
from steerboard.evaluation.judges.schemas import JudgeChange, JudgeEstimate, JudgeIn, JudgeSettings
from steerboard.evaluation.judges.spending.budget import Prices
from steerboard.evaluation.judges.spending.costs import budget_holder, calibrated_judge
from steerboard.evaluation.recipe_runs import RecipeStage, child_of
from steerboard.evaluation.tables import CALIBRATION, Entrant, Evaluation
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
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.models import what_to_name
from steerboard_contracts.run_kinds.compare import CompareConfig
from steerboard_contracts.run_kinds.judge import JudgeConfig

_BROKEN = ("failed", "cancelled")


def judges_of(session: Session, evaluation: Evaluation) -> Sequence[Judge]:
    """Oldest first."""
    return session.scalars(select(Judge).where(Judge.evaluation_id == evaluation.id).order_by(Judge.id)).all()


def get_judge(session: Session, evaluation: Evaluation, ref: str) -> Judge:
    """The judge by id or name. Raises `NotFound` (`unknown_judge`)."""
    query = select(Judge).where(Judge.evaluation_id == evaluation.id)
    judge = find(session, query, Judge.id, Judge.name, ref)
    if judge is None:
        known = ", ".join(listed.name for listed in judges_of(session, evaluation))
        raise NotFound(
            f"evaluation {evaluation.name!r} has no judge {ref!r}; it has {known or 'none'}", code="unknown_judge"
        )
    return judge


def create_judge(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    given: JudgeIn,
    actor: str,
    stage: RecipeStage | None = None,
    calibrates: Judge | None = None,
) -> Judge:
    """A judge, and the run in which it judges; it waits for answers that are still being made. For a recipe's
    `stage` that run is one of the stage's; with `calibrates` it spends that judge's budget.

    Raises `InvalidJudge`, `NotFound`, `NameTaken`, `BadInput` (`wrong_role`).
    """
    given = _nameless(evaluation, given)
    respondent = _respondent(session, project, given)
    judged = checked(session, evaluation, given)
    model = respondent.name if isinstance(respondent, Model) else respondent.model
    usual = f"{respondent.name[:100]}-{given.style}"
    taken = names_like(session, Judge.name, usual, Judge.evaluation_id == evaluation.id)
    judge = Judge(
        evaluation_id=evaluation.id,
        name=given.name or free_name(usual, taken),
        style=given.style,
        model=model,
        family=given.family or family_of(model),
        endpoint_id=None if isinstance(respondent, Model) else respondent.id,
        model_id=respondent.id if isinstance(respondent, Model) else None,
        content_hash=respondent.artifact_hash if isinstance(respondent, Model) else None,
        settings=given.settings.model_dump(mode="json"),
        created_by=actor,
    )
    if _taken(session, evaluation, judge.name):
        raise NameTaken(f"there is already a judge or a jury {judge.name!r}", hint="Give it another `name`.")
    session.add(judge)
    session.flush()
    pool = given.pool or evaluation.pool or "default"
    _start(session, project, evaluation, judge, judged, pool, actor, stage, calibrates.id if calibrates else None)
    return judge


def _nameless(evaluation: Evaluation, given: JudgeIn) -> JudgeIn:
    """Makes a judge of known pairs blind: the entrants' names, or the same order every time, would give away the better
    side."""
    if evaluation.prompts_from.get("kind") != CALIBRATION:
        return given
    return given.model_copy(update={"settings": given.settings.model_copy(update={"blind": True})})


def estimate(session: Session, project: Project, evaluation: Evaluation, given: JudgeIn) -> JudgeEstimate:
    """What it would ask, were all answers there, and how much of that is known already. Raises like `create_judge`."""
    given = _nameless(evaluation, given)
    respondent = _respondent(session, project, given)
    checked(session, evaluation, given)
    inputs = reading.judge_inputs_of(session, evaluation, given.settings, assume=True)
    if isinstance(respondent, Model):
        return JudgeEstimate(requests=2 * sum(1 for _ in comparisons.pairs(inputs, given.settings)), cached=0)
    prices = Prices.of(given.settings)
    requests, most = 0, dict[str, float]()

    def questions() -> Iterator[Question]:
        return styles.questions(given.style, given.settings, respondent.model, inputs)

    for question in chain(questions(), styles.repeats(given.settings, questions())):
        requests += 1
        key = key_of(respondent.base_url, question.request, repeat=question.repeat)
        most[key] = prices.most(question.request) if prices is not None else 0.0
    known = reading.answered(session, project.id, most)
    return JudgeEstimate(
        requests=requests,
        cached=requests - len(most) + len(known),
        most_cost=None if prices is None else sum(cost for key, cost in most.items() if key not in known),
    )


def _respondent(session: Session, project: Project, given: JudgeIn) -> Endpoint | Model:
    check_who(given)
    if given.model is None:
        return get_endpoint(session, project, given.endpoint or "")
    model = get_model(session, project, given.model)
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
            f"judge {judge.name!r} has no endpoint or model to call",
            code="imported_judge",
            hint="Import the judgments again, or add a judge with an endpoint or a preference model.",
        )
    run = session.get(Run, judge.run_id) if judge.run_id else None
    if run is not None and run.state not in ENDED:
        raise Conflict(f"judge {judge.name!r} is running", code="judge_at_work", hint="Wait for its run to end.")
    if run is not None and run.state in _BROKEN and run.reason_code not in ("upstream_failed", "upstream_cancelled"):
        lifecycle.resume(session, run, actor)
        return
    settings = JudgeSettings.model_validate(judge.settings)
    pool = run.pool if run is not None else evaluation.pool or "default"
    judged = judged_entrants(session, evaluation, settings)
    calibrates = calibrated_judge(run) if run is not None else None
    _start(session, project, evaluation, judge, judged, pool, actor, calibrates=calibrates)


def broken(session: Session, judge: Judge) -> bool:
    """Whether its run has failed or was cancelled."""
    run = session.get(Run, judge.run_id) if judge.run_id else None
    return run is not None and run.state in _BROKEN


def change_judge(session: Session, judge: Judge, given: JudgeChange) -> None:
    """Its budget, which is also that of its calibrations. A run that is under way keeps the one that it began with.
    Raises `InvalidJudge`."""
    judge = budget_holder(session, judge)
    settings = JudgeSettings.model_validate(judge.settings)
    if given.budget is not None and Prices.of(settings) is None:
        message = "the judge has no prices to compare with one"
        raise InvalidJudge(
            f"judge {judge.name!r} cannot have a budget",
            errors=[ErrorLocation(location="body.budget", message=message)],
            hint="Add a judge with a `prompt_price` or a `completion_price`.",
        )
    judge.settings = {**judge.settings, "budget": given.budget}


def delete_judge(session: Session, judge: Judge) -> None:
    """Delete a judge with its verdicts; answers that were paid for stay. Raises `InUse` while its run is under way."""
    run = session.get(Run, judge.run_id) if judge.run_id else None
    if run is not None and run.state not in ENDED:
        raise InUse(f"judge {judge.name!r} is running", hint="Cancel its run first.")
    session.delete(judge)
    session.flush()


def _start(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    judge: Judge,
    judged: Sequence[Entrant],
    pool: str,
    actor: str,
    stage: RecipeStage | None = None,
    calibrates: uuid.UUID | None = None,
) -> None:
    """The run, which waits for those of answers that are under way."""
    making = [session.get(Run, entrant.run_id) for entrant in judged if entrant.run_id]
    waits_for = [run.id for run in making if run is not None and run.state not in ENDED]
    config: JudgeConfig | CompareConfig = JudgeConfig(evaluation=evaluation.id, judge=judge.id, calibrates=calibrates)
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


def _taken(session: Session, evaluation: Evaluation, name: str) -> bool:
    """Whether a judge has the name, or a jury, which is a source of the report as well."""
    return any(
        session.scalar(select(of.id).where(of.evaluation_id == evaluation.id, of.name == name)) is not None
        for of in (Judge, Jury)
    )
