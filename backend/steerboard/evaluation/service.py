"""The rules of evaluations: made, changed, removed, and when they are finished."""

from __future__ import annotations

import uuid

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import InUse, NameTaken
from steerboard.evaluation import contamination, divergence, rewards
from steerboard.evaluation.entrants import service as entrants
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.entrants.schemas import EntrantIn
from steerboard.evaluation.events import assessing_runs, changed
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.prompts import service as prompts
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask
from steerboard.evaluation.schemas import EvaluationChange, EvaluationCreate
from steerboard.evaluation.tables import Entrant, Evaluation
from steerboard.platform.names import check_name
from steerboard.runs.state.lifecycle import request_cancel
from steerboard.runs.state.states import ENDED
from steerboard.runs.tables import Run
from steerboard_contracts.report.evaluation import Unfinished
from steerboard_contracts.report.sections.comparison import By


def create(session: Session, project: Project, given: EvaluationCreate, actor: str) -> Evaluation:
    """Choose the prompts and let every entrant answer them; reward models follow when all answers are there.

    Raises `NotFound`, `NameTaken`, `EmptySelection`, and what `divergence.chosen`, `entrants.add` and
    `rewards.assess` raise.
    """
    _check_free(session, project, given.name)
    chosen = prompts.choose(session, project, given.prompts)
    evaluation = Evaluation(
        project_id=project.id,
        name=given.name,
        description=given.description,
        prompts_from=chosen.origin,
        checked_against=[],
        seed=given.seed,
        pool=given.pool,
        kl_to=divergence.chosen(session, project, given.kl_to) if given.kl_to is not None else None,
        version=0,
        created_by=actor,
    )
    session.add(evaluation)
    session.flush()
    prompts.store(session, evaluation, chosen)
    for number, entrant in enumerate(given.entrants):
        with entrants.faults_below(f"body.entrants.{number}"):
            entrants.add(session, project, evaluation, entrant, actor)
    for name in dict.fromkeys(given.rewards):
        rewards.assess(session, project, evaluation, name, actor)
    contamination.plan(session, project, evaluation, given.check_against)
    changed(session, evaluation, "created")
    return evaluation


def add_entrant(session: Session, project: Project, evaluation: Evaluation, given: EntrantIn, actor: str) -> Entrant:
    """One more, who answers the same prompts; the evaluation's reward models score it too."""
    with entrants.faults_below("body"):
        entrant = entrants.add(session, project, evaluation, given, actor)
    rewards.assess_new_responses(session, project, evaluation, actor)
    contamination.plan(session, project, evaluation, None)
    changed(session, evaluation, "entrants")
    return entrant


def change(session: Session, project: Project, evaluation: Evaluation, given: EvaluationChange) -> None:
    """Raises `NameTaken`."""
    if given.name is not None and given.name != evaluation.name:
        _check_free(session, project, given.name)
        evaluation.name = given.name
    if given.description is not None:
        evaluation.description = given.description
    session.flush()
    changed(session, evaluation, "name")


def delete(session: Session, evaluation: Evaluation, actor: str) -> None:
    """Delete it with all its results, and cancel its runs. Raises `InUse` when people have ranked in it."""
    rankings = session.scalar(
        select(func.count())
        .select_from(RankingTask)
        .join(Campaign, Campaign.id == RankingTask.campaign_id)
        .where(Campaign.evaluation_id == evaluation.id, RankingTask.state != "locked")
    )
    if rankings:
        raise InUse(
            f"people have given {rankings} rankings in {evaluation.name!r}",
            hint="People's rankings are never removed. Rename the evaluation if it is in the way.",
        )
    for run in _runs(session, evaluation):
        if run.state not in ENDED:
            request_cancel(session, run, actor)
    changed(session, evaluation, "deleted")
    session.delete(evaluation)
    session.flush()


def unfinished(session: Session, evaluation: Evaluation) -> list[Unfinished]:
    """What is still under way or has failed; empty when the evaluation is finished."""
    runs: dict[uuid.UUID | None, Run] = {run.id: run for run in _runs(session, evaluation)}
    reasons: list[Unfinished] = []
    for entrant in entrants_of(session, evaluation):
        reasons += _of_run(f"the answers of {entrant.name}", runs.get(entrant.run_id))
    for assessment in rewards.assessments_of(session, evaluation):
        reasons += _of_run(
            f"the rewards by {assessment.name}", runs.get(assessment.run_id), by="reward", source=assessment.name
        )
    judges = select(Judge.name, Judge.run_id).where(Judge.evaluation_id == evaluation.id).order_by(Judge.id)
    for name, run_id in session.execute(judges):
        reasons += _of_run(f"the verdicts of {name}", runs.get(run_id), by="judge", source=name)
    for name, state, left, items in campaigns_with_items_left(session, evaluation.id):
        is_paused = " (it is paused)" if state == "paused" else ""
        words = f"{left} of {items} items of campaign {name} are still to be ranked{is_paused}"
        reasons.append(Unfinished(words=words, by="human", source=name))
    if evaluation.to_check:
        reasons.append(Unfinished(words="the prompts are still being looked for in training data"))
    return reasons


def campaigns_with_items_left(session: Session, evaluation_id: uuid.UUID) -> list[tuple[str, str, int, int]]:
    """(name, state, items left, all items) of the campaigns that are not closed and have items left."""
    left = func.count().filter(RankingItem.rankings < Campaign.overlap)
    rows = session.execute(
        select(Campaign.name, Campaign.state, left, func.count())
        .join(RankingItem, RankingItem.campaign_id == Campaign.id)
        .where(Campaign.evaluation_id == evaluation_id, Campaign.state != "closed")
        .group_by(Campaign.id)
        .having(left > 0)
        .order_by(Campaign.id)
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def _of_run(what: str, run: Run | None, by: By | None = None, source: str | None = None) -> list[Unfinished]:
    """What is unfinished about `what`, which a run has to do; nothing without a run, or where it succeeded."""
    if run is None or run.state == "succeeded":
        return []
    words = {"pending": "wait", "queued": "wait", "running": "are under way", "failed": "failed"}
    text = f"{what} {words.get(run.state, 'were cancelled')}: {run.reason}"
    return [Unfinished(words=text, by=by, source=source)]


def _runs(session: Session, evaluation: Evaluation) -> list[Run]:
    """The runs of entrants, reward models and judges."""
    query = select(Run).where(Run.id.in_(assessing_runs(evaluation.id)))
    return list(session.scalars(query.order_by(Run.id).execution_options(populate_existing=True)))


def _check_free(session: Session, project: Project, name: str) -> None:
    check_name(name)
    if session.scalar(select(Evaluation.id).where(Evaluation.project_id == project.id, Evaluation.name == name)):
        raise NameTaken(f"there is already an evaluation {name!r}", hint="Choose another name.")
