"""Checkpoints as OpenAI's API has them: weights that are a model one can ask. Here that is the model of the run; what a
run resumes from is none."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.openai_api.ids import CHECKPOINT, JOB, shown
from steerboard.openai_api.jobs.presenters import seconds
from steerboard.openai_api.jobs.results import OPENAI_NAMES
from steerboard.openai_api.lists import listed, unknown_after
from steerboard.openai_api.tables import FineTuningJob
from steerboard.registry.tables import Model
from steerboard.runs.inputs import MAIN_MODEL
from steerboard.runs.tables import Metric, RunOutput


def checkpoints_out(session: Session, job: FineTuningJob, after: str | None) -> dict[str, Any]:
    """Raises `InvalidRequest` (`bad_cursor`)."""
    model = session.scalar(
        select(Model)
        .join(RunOutput, RunOutput.model_id == Model.id)
        .where(RunOutput.run_id == job.run_id, RunOutput.name == MAIN_MODEL)
    )
    data = [_out(session, job, model)] if model is not None else []
    if after is not None:
        if after not in [checkpoint["id"] for checkpoint in data]:
            raise unknown_after(after)
        data = []
    return listed(data, more=False)


def _out(session: Session, job: FineTuningJob, model: Model) -> dict[str, Any]:
    conditions = Metric.run_id == job.run_id, Metric.name.in_(OPENAI_NAMES)
    step = session.scalar(select(func.max(Metric.step)).where(*conditions)) or 0
    last = session.execute(select(Metric.name, Metric.value).where(*conditions, Metric.step == step))
    return {
        "id": shown(CHECKPOINT, job.id),
        "object": "fine_tuning.job.checkpoint",
        "created_at": seconds(model.created_at),
        "fine_tuned_model_checkpoint": model.name,
        "fine_tuning_job_id": shown(JOB, job.id),
        "metrics": {"step": step, **{OPENAI_NAMES[name]: value for name, value in last}},
        "step_number": step,
    }
