"""The way from a recipe's evaluate stage to its evaluation."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.runs.pipelines.service import evaluations_of, get_pipeline, stages_of
from steerboard.runs.tables import Run


def evaluation_of(session: Session, run: Run) -> Evaluation | None:
    """The one that an evaluate run started, or took over from an equal run, unless it has been deleted."""
    return session.scalar(select(Evaluation).where(Evaluation.run_id == (run.reused_from_id or run.id)))


class NoEvaluationYet(Conflict):
    """A pipeline's evaluation begins when the stages before it have ended."""

    code = "no_evaluation_yet"
    title = "The pipeline has no evaluation yet"


def evaluation_of_pipeline(session: Session, project: Project, ref: str, stage: str | None = None) -> Evaluation:
    """The evaluation of the evaluate stage `stage`, or of the last one. Raises `NotFound`, `NoEvaluationYet`."""
    pipeline = get_pipeline(session, project, ref)
    stages = evaluations_of(stages_of(session, pipeline), stage)
    if not stages:
        what = f"evaluation `{stage}`" if stage is not None else "evaluation"
        raise NotFound(f"the recipe of pipeline {pipeline.name} has no {what}", code="no_evaluation")
    run = stages[-1]
    evaluation = evaluation_of(session, run)
    if evaluation is not None:
        return evaluation
    if run.state == "succeeded":
        raise NotFound(
            f"pipeline {pipeline.name} has no evaluation: it was deleted, or the pipeline predates evaluations",
            code="no_evaluation",
            hint="Start the recipe again; trained models are reused.",
        )
    raise NoEvaluationYet(f"stage {run.name} of pipeline {pipeline.name} is {run.state}: {run.reason}")


def is_there(session: Session, run: Run) -> bool:
    return evaluation_of(session, run) is not None
