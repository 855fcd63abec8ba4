"""Evaluations as the API shows them, by few queries whatever their number."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.evaluation import contamination
from steerboard.evaluation.divergence import kl_to_of
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.entrants.schemas import EntrantOut, RunRef
from steerboard.evaluation.entrants.service import decoding_of
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.judges.presenters import judges_out
from steerboard.evaluation.ranking.campaigns.queries import campaigns_out
from steerboard.evaluation.ranking.tables import Campaign
from steerboard.evaluation.rewards import assessments_of
from steerboard.evaluation.schemas import (
    CheckedDataset,
    ContaminationOut,
    EvaluationDetail,
    EvaluationOut,
    EvaluationState,
    RewardAssessmentOut,
)
from steerboard.evaluation.service import unfinished
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response, RewardAssessment, RewardValue
from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.state.states import ENDED, RunState
from steerboard.runs.tables import Run


def evaluations_out(session: Session, evaluations: Sequence[Evaluation]) -> list[EvaluationOut]:
    """The evaluations in their order."""
    ids = [evaluation.id for evaluation in evaluations]
    sizes = _sizes(session, ids)
    names: dict[uuid.UUID, list[str]] = defaultdict(list)
    states: dict[uuid.UUID, list[str]] = defaultdict(list)
    rows = session.execute(
        select(Entrant.evaluation_id, Entrant.name, Run.state)
        .outerjoin(Run, Run.id == Entrant.run_id)
        .where(Entrant.evaluation_id.in_(ids))
        .order_by(Entrant.position, Entrant.id)
    )
    for id_, name, state in rows:
        names[id_].append(name)
        if state is not None:
            states[id_].append(state)
    judges, campaigns = _count(session, Judge, ids), _count(session, Campaign, ids)
    return [
        EvaluationOut(
            id=evaluation.id,
            name=evaluation.name,
            description=evaluation.description,
            created_by=evaluation.created_by,
            created_at=evaluation.created_at,
            version=evaluation.version,
            prompts=sizes.get(evaluation.id, (0, 0))[0],
            turns=sizes.get(evaluation.id, (0, 0))[1],
            entrants=names[evaluation.id],
            state=_state(states[evaluation.id]),
            judges=judges.get(evaluation.id, 0),
            campaigns=campaigns.get(evaluation.id, 0),
        )
        for evaluation in evaluations
    ]


def detail(session: Session, evaluation: Evaluation) -> EvaluationDetail:
    """An evaluation with entrants, assessments, judges, campaigns, and what is left to do."""
    exact, near = contamination.counts(session, evaluation)
    (short,) = evaluations_out(session, [evaluation])
    categories = session.scalars(
        select(EvaluationPrompt.category)
        .where(EvaluationPrompt.evaluation_id == evaluation.id, EvaluationPrompt.category.is_not(None))
        .group_by(EvaluationPrompt.category)
        .order_by(func.min(EvaluationPrompt.position))
    )
    return EvaluationDetail(
        **short.model_dump(exclude={"entrants", "judges", "campaigns"}),
        seed=evaluation.seed,
        pool=evaluation.pool or "default",
        categories=[category for category in categories if category],
        prompts_from=evaluation.prompts_from,
        entrants=entrants_out(session, evaluation, entrants_of(session, evaluation)),
        reward_assessments=assessments_out(session, evaluation, assessments_of(session, evaluation)),
        judges=judges_out(session, evaluation),
        campaigns=campaigns_out(session, evaluation),
        contamination=ContaminationOut(
            checked=[CheckedDataset.model_validate(dataset) for dataset in evaluation.checked_against],
            exact=exact,
            near=near,
            waiting=bool(evaluation.to_check),
        ),
        unfinished=[part.words for part in unfinished(session, evaluation)],
        kl_to=kl_to.name if (kl_to := kl_to_of(evaluation)) is not None else None,
    )


def entrants_out(session: Session, evaluation: Evaluation, entrants: Sequence[Entrant]) -> list[EntrantOut]:
    """The entrants with the number of their responses and the state of their runs."""
    prompts = _sizes(session, [evaluation.id]).get(evaluation.id, (0, 0))[0]
    counts = dict(
        session.execute(
            select(Response.entrant_id, func.count())
            .where(Response.entrant_id.in_([entrant.id for entrant in entrants]))
            .group_by(Response.entrant_id)
        ).all()
    )
    runs = _runs(session, [entrant.run_id for entrant in entrants])
    models = _names(session, Model, [entrant.model_id for entrant in entrants])
    endpoints = _names(session, Endpoint, [entrant.endpoint_id for entrant in entrants])
    return [
        EntrantOut(
            id=entrant.id,
            name=entrant.name,
            source=entrant.source,
            model=models.get(entrant.model_id),
            model_id=entrant.model_id,
            endpoint=endpoints.get(entrant.endpoint_id),
            method=entrant.method,
            score=entrant.score,
            decoding=decoding_of(entrant),
            samples=entrant.samples,
            family=entrant.family,
            content_hash=entrant.content_hash,
            responses=counts.get(entrant.id, 0),
            missing=max(0, prompts * entrant.samples - counts.get(entrant.id, 0)),
            run=runs.get(entrant.run_id),
            imported=_origin(entrant),
        )
        for entrant in entrants
    ]


def _origin(entrant: Entrant) -> dict[str, Any] | None:
    """The origin of imported answers, without the ids that only reviews of them need."""
    if entrant.imported is None:
        return None
    return {name: value for name, value in entrant.imported.items() if name != "answer_ids"}


def assessments_out(
    session: Session, evaluation: Evaluation, assessments: Sequence[RewardAssessment]
) -> list[RewardAssessmentOut]:
    """The assessments, and how much of their work is done."""
    responses = session.scalar(
        select(func.count())
        .select_from(Response)
        .join(Entrant, Entrant.id == Response.entrant_id)
        .where(Entrant.evaluation_id == evaluation.id)
    )
    values = dict(
        session.execute(
            select(RewardValue.assessment_id, func.count())
            .where(RewardValue.assessment_id.in_([assessment.id for assessment in assessments]))
            .group_by(RewardValue.assessment_id)
        ).all()
    )
    runs = _runs(session, [assessment.run_id for assessment in assessments])
    listed = []
    for assessment in assessments:
        run = runs.get(assessment.run_id)
        summary = assessment.summary or {}
        pairs = int(summary.get("pairs") or 0)
        listed.append(
            RewardAssessmentOut(
                id=assessment.id,
                name=assessment.name,
                model_id=assessment.model_id,
                state=run.state if run else "succeeded",
                run=run,
                values=values.get(assessment.id, 0),
                responses=responses or 0,
                pairs=pairs,
                accuracy=summary["correct"] / pairs if pairs else None,
                normalised_by=summary.get("normalised_by") or (assessment.normaliser or {}).get("reward_source"),
            )
        )
    return listed


def _state(states: Sequence[str]) -> EvaluationState:
    """The state of the answers, from the states of their runs."""
    if any(state not in ENDED for state in states):
        return "answering"
    return "answered" if all(state == "succeeded" for state in states) else "failed"


def _sizes(session: Session, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[int, int]]:
    """(prompts, turns of the longest) of each."""
    rows = session.execute(
        select(
            EvaluationPrompt.evaluation_id,
            func.count(),
            1 + func.max(func.jsonb_array_length(EvaluationPrompt.follow_ups)),
        )
        .where(EvaluationPrompt.evaluation_id.in_(ids))
        .group_by(EvaluationPrompt.evaluation_id)
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def _count(session: Session, table: type[Judge] | type[Campaign], ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    counted = select(table.evaluation_id, func.count()).where(table.evaluation_id.in_(ids))
    return dict(session.execute(counted.group_by(table.evaluation_id)).all())


def _runs(session: Session, ids: Sequence[uuid.UUID | None]) -> dict[uuid.UUID | None, RunRef]:
    rows = session.scalars(select(Run).where(Run.id.in_([id_ for id_ in ids if id_ is not None])))
    return {
        run.id: RunRef(
            id=run.id,
            state=cast(RunState, run.state),
            reason=run.reason,
            reason_code=run.reason_code,
            progress=run.progress,
        )
        for run in rows
    }


def _names(
    session: Session, table: type[Model] | type[Endpoint], ids: Sequence[uuid.UUID | None]
) -> dict[uuid.UUID | None, str]:
    wanted = [id_ for id_ in ids if id_ is not None]
    return dict(session.execute(select(table.id, table.name).where(table.id.in_(wanted))).all())
