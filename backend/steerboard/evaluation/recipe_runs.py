"""The recipe's stage that an evaluation is made for: its run, the runs that are its children, and what it kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.evaluation.tables import Evaluation
from steerboard.runs.tables import Run, RunOutput
from steerboard_contracts.report.kept import read_report
from steerboard_contracts.report.sections.recipe import RecipeSection
from steerboard_contracts.run_kinds.evaluate import EvaluateConfig


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


def section_of(session: Session, evaluation: Evaluation) -> RecipeSection | None:
    """What the stage kept of the recipe when the evaluation was complete."""
    conditions = RunOutput.run_id == evaluation.run_id, RunOutput.type == "report"
    document = session.scalar(select(RunOutput.document).where(*conditions))
    report = read_report(document).report if document is not None else None
    return report.recipe if report is not None else None
