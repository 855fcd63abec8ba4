"""Datasets and models as runs know them: what `<pipeline>.<stage>` made, and whether a run needs one."""

from __future__ import annotations

import uuid
from typing import Literal, get_args

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from steerboard.registry.tables import Model
from steerboard.runs.tables import Pipeline, Run, RunInput, RunOutput
from steerboard_contracts.models import ModelRole

# What a run's further models are called; its own output has another name.
ROLES = get_args(ModelRole)
Kind = Literal["dataset", "model"]


def stage_output(session: Session, project_id: uuid.UUID, ref: str, kind: Kind) -> uuid.UUID | None:
    """The dataset or model that `<pipeline>.<stage>` made or reused, or its further model `<pipeline>.<stage>.<role>`.
    The names of both may contain dots."""
    column = RunOutput.dataset_id if kind == "dataset" else RunOutput.model_id
    for place in (at for at, letter in enumerate(ref) if letter == "."):
        stage, _, role = ref[place + 1 :].rpartition(".")
        main = (Run.name == ref[place + 1 :]) & RunOutput.name.not_in(ROLES)
        further = (Run.name == stage) & (RunOutput.name == role) & RunOutput.name.in_(ROLES)
        output_id = session.scalar(
            select(column)
            .select_from(Pipeline)
            .join(Run, Run.pipeline_id == Pipeline.id)
            .join(RunOutput, RunOutput.run_id.in_([Run.id, Run.reused_from_id]))
            .where(
                Pipeline.project_id == project_id,
                Pipeline.name == ref[:place],
                or_(main, further),
                column.is_not(None),
            )
            .order_by(Run.id.desc())
            .limit(1)
        )
        if output_id is not None:
            return output_id
    return None


def models_of_pipeline(session: Session, pipeline: Pipeline) -> list[Model]:
    """What its runs made or reused, by age."""
    made = (
        select(RunOutput.model_id)
        .join(Run, RunOutput.run_id.in_([Run.id, Run.reused_from_id]))
        .where(Run.pipeline_id == pipeline.id, RunOutput.model_id.is_not(None))
    )
    return list(session.scalars(select(Model).where(Model.id.in_(made)).order_by(Model.id)))


def used_by_run(session: Session, kind: Kind, id_: uuid.UUID) -> bool:
    """Whether a run has read or made it."""
    columns = (
        (RunInput.dataset_id, RunOutput.dataset_id) if kind == "dataset" else (RunInput.model_id, RunOutput.model_id)
    )
    return bool(session.scalar(select(or_(*(select(column).where(column == id_).exists() for column in columns)))))
