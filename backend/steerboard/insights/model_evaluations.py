"""What finished evaluations found about one model."""

from __future__ import annotations

import uuid
from typing import Any

from pydantic import ValidationError
from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session

from steerboard.evaluation.tables import Entrant, Evaluation, RewardAssessment
from steerboard.registry.schemas import EvaluatedRow, ModelEvaluationOut, NamedRef
from steerboard.registry.tables import Model
from steerboard.runs.inputs import MAIN_MODEL
from steerboard.runs.tables import Pipeline, Run, RunInput, RunOutput
from steerboard_contracts.report.kept import read_report
from steerboard_contracts.report.pipeline import MethodRow, PipelineReport

_ENTRANTS = "entrants."
_MOST_ENTERED = 50


def evaluations_of(session: Session, model: Model, limit: int) -> list[ModelEvaluationOut]:
    """Newest first. In a pipeline the model goes in as the output of a stage, which may have reused it."""
    made_it = exists().where(
        RunOutput.model_id == model.id,
        RunOutput.run_id == RunInput.upstream_run_id,
        RunOutput.name == func.coalesce(RunInput.upstream_output, MAIN_MODEL),
    )
    entered = RunInput.name.startswith(_ENTRANTS) & or_(RunInput.model_id == model.id, made_it)
    rows = session.execute(
        select(
            Run.id,
            Run.created_at,
            Run.config["entrants"].label("entrants"),
            Pipeline.id.label("pipeline_id"),
            Pipeline.name.label("pipeline"),
            RunOutput.document,
        )
        .join(RunOutput, (RunOutput.run_id == Run.id) & (RunOutput.type == "report"))
        .outerjoin(Pipeline, Pipeline.id == Run.pipeline_id)
        .where(Run.project_id == model.project_id, Run.kind == "evaluate")
        .where(Run.id.in_(select(RunInput.run_id).where(entered)))
        .order_by(Run.id.desc())
        .limit(limit)
    ).all()
    places: dict[uuid.UUID, set[int]] = {}
    inputs = select(RunInput.run_id, RunInput.name).where(RunInput.run_id.in_([row.id for row in rows]), entered)
    for run_id, name in session.execute(inputs):
        places.setdefault(run_id, set()).add(int(name.removeprefix(_ENTRANTS)))
    evaluations = []
    for row in rows:
        report = _report(row.document)
        if report is None:
            continue
        own_rows = _own_rows(report.methods, row.entrants, places[row.id], model.name)
        evaluations.append(
            ModelEvaluationOut(
                run_id=row.id,
                pipeline=NamedRef(id=row.pipeline_id, name=row.pipeline) if row.pipeline_id else None,
                created_at=row.created_at,
                prompts=report.prompts,
                baseline=report.baseline,
                rows=[EvaluatedRow(**method.model_dump(), reward=method.reward_mean) for method in own_rows],
            )
        )
    return evaluations


def entered_evaluations(session: Session, model: Model) -> list[NamedRef]:
    """Evaluations in which the model answers, or scores the answers; newest first."""
    answers = select(Entrant.evaluation_id).where(Entrant.model_id == model.id)
    scores = select(RewardAssessment.evaluation_id).where(RewardAssessment.model_id == model.id)
    rows = session.execute(
        select(Evaluation.id, Evaluation.name)
        .where(Evaluation.project_id == model.project_id, Evaluation.id.in_(answers.union(scores)))
        .order_by(Evaluation.id.desc())
        .limit(_MOST_ENTERED)
    )
    return [NamedRef(id=row.id, name=row.name) for row in rows]


def _report(document: dict[str, Any]) -> PipelineReport | None:
    """Returns None for a report that an older version wrote in another form."""
    try:
        return read_report(document)
    except ValidationError:
        return None


def _own_rows(methods: list[MethodRow], entrants: list[dict[str, Any]], places: set[int], name: str) -> list[MethodRow]:
    """The table has the entrants in their order, each once for each of its scores.

    By place and not by name: a report that was taken over from an equal run has that run's names.
    """
    owners = [place for place, entrant in enumerate(entrants) for _ in range(max(1, len(set(entrant["scores"]))))]
    if len(owners) != len(methods):
        return [method for method in methods if method.entrant == name]
    return [method for method, owner in zip(methods, owners, strict=True) if owner in places]
