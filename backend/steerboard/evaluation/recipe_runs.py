"""The recipe's stage that an evaluation is made for: its run, the runs that are its children, and what it kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.evaluation.tables import Evaluation
from steerboard.runs.pipelines.report import stage_rows
from steerboard.runs.pipelines.service import stages_of
from steerboard.runs.tables import Pipeline, Run, RunOutput
from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.report.pipeline import Report
from steerboard_contracts.report.summary import in_words


@dataclass(frozen=True)
class RecipeStage:
    """The evaluate run that an evaluation is made for. `labelled` and `preferences`: what the recipe gives its reward
    models for z units and for their accuracy."""

    run: Run
    config: EvaluateConfig
    labelled: Dataset | None
    preferences: Dataset | None


def child_of(stage: RecipeStage | None, part: str) -> dict[str, Any]:
    """What `create_run` takes for the run of one part: an entrant, a reward model."""
    if stage is None:
        return {}
    return {"name": f"{stage.run.name}.{part}"[:128], "parent": stage.run, "priority": stage.run.priority}


def report_of(session: Session, evaluation: Evaluation) -> Report | None:
    """What the stage kept when the evaluation was complete, with what the pipeline's stages took."""
    run = session.get(Run, evaluation.run_id) if evaluation.run_id is not None else None
    if run is None:
        return None
    mine = RunOutput.run_id == run.id, RunOutput.type == "report"
    document = session.scalar(select(RunOutput.document).where(*mine))
    if document is None:
        return None
    found = Report.model_validate(document)
    pipeline = session.get(Pipeline, run.pipeline_id) if run.pipeline_id else None
    stages = stage_rows(session, stages_of(session, pipeline)) if pipeline is not None else []
    return in_words(found).model_copy(update={"stages": stages})
