"""Jobs in OpenAI's words."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.openai_api.ids import FILE, JOB, RESULTS, shown
from steerboard.openai_api.jobs.schemas import JobPlan
from steerboard.openai_api.tables import FineTuningJob
from steerboard.registry.tables import Model
from steerboard.runs.inputs import MAIN_MODEL
from steerboard.runs.tables import Metric, Run, RunOutput
from steerboard_contracts.specs.tuning import COMMON

_OF_JOB = {"validating": "validating_files", "failed": "failed", "cancelled": "cancelled"}
_OF_RUN = {"pending": "queued", "skipped": "cancelled"}
# The metric of each step with its tokens.
_TOKENS = "tokens"


def jobs_out(session: Session, jobs: Sequence[FineTuningJob]) -> list[dict[str, Any]]:
    """The jobs in four queries, however many there are."""
    ids = [job.run_id for job in jobs if job.run_id is not None]
    runs = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(ids)))}
    made = (
        select(RunOutput.run_id, Model.name)
        .join(Model, Model.id == RunOutput.model_id)
        .where(RunOutput.run_id.in_(ids), RunOutput.name == MAIN_MODEL)
    )
    models = {row.run_id: row.name for row in session.execute(made)}
    counted = select(Metric.run_id, func.sum(Metric.value)).where(Metric.run_id.in_(ids), Metric.name == _TOKENS)
    tokens = {run_id: int(total) for run_id, total in session.execute(counted.group_by(Metric.run_id))}
    return [_out(job, runs.get(job.run_id) if job.run_id else None, models, tokens) for job in jobs]


def status_of(job: FineTuningJob, run: Run | None) -> str:
    return _OF_JOB[job.state] if run is None else _OF_RUN.get(run.state, run.state)


def seconds(moment: dt.datetime | None) -> int | None:
    return int(moment.timestamp()) if moment is not None else None


def _out(
    job: FineTuningJob, run: Run | None, models: dict[uuid.UUID, str], tokens: dict[uuid.UUID, int]
) -> dict[str, Any]:
    plan = JobPlan.model_validate(job.plan)
    status = status_of(job, run)
    succeeded = run is not None and run.state == "succeeded"
    values = job.settled or plan.hyperparameters
    about: dict[str, Any] = {"hyperparameters": values}
    if plan.grader is not None:
        about["grader"] = plan.grader
    return {
        "id": shown(JOB, job.id),
        "object": "fine_tuning.job",
        "created_at": seconds(job.created_at),
        "error": _error(job, run) if status == "failed" else None,
        "estimated_finish": None,
        "fine_tuned_model": models.get(run.id) if run is not None and succeeded else None,
        "finished_at": seconds(job.ended_at if run is None else run.ended_at),
        "hyperparameters": {name: values[name] for name in COMMON},
        "integrations": [],
        "metadata": job.labels,
        "method": {"type": plan.type, plan.type: about},
        "model": job.model,
        "organization_id": str(job.project_id),
        "result_files": [shown(RESULTS, job.id)] if succeeded else [],
        "seed": job.seed,
        "status": status,
        "suffix": plan.suffix,
        "trained_tokens": tokens.get(run.id) if run is not None and succeeded else None,
        "training_file": shown(FILE, job.training_file),
        "validation_file": None,
        "steerboard": {
            "run_id": str(run.id) if run is not None else None,
            "run": run.name if run is not None else None,
            "dataset_id": str(job.dataset_id) if job.dataset_id else None,
            "reason": run.reason if run is not None else None,
        },
    }


def _error(job: FineTuningJob, run: Run | None) -> dict[str, Any] | None:
    if run is None:
        return job.error
    hint = (run.error or {}).get("hint")
    message = f"{run.reason}\n{hint}" if hint else run.reason
    return {"code": run.reason_code or "failed", "message": message, "param": None}
