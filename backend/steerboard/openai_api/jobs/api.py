"""`/fine_tuning/jobs` of OpenAI's API."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import BackgroundTasks, Query, Request
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.imports.files import ImportFiles
from steerboard.openai_api.dependencies import Read, Run
from steerboard.openai_api.errors import unsupported
from steerboard.openai_api.ids import JOB, shown
from steerboard.openai_api.jobs import service
from steerboard.openai_api.jobs.checkpoints import checkpoints_out
from steerboard.openai_api.jobs.events import events_out
from steerboard.openai_api.jobs.presenters import jobs_out
from steerboard.openai_api.jobs.schemas import JobIn
from steerboard.openai_api.lists import page_of
from steerboard.openai_api.tables import FineTuningJob

router = Router(prefix="/fine_tuning/jobs")

Limit = Annotated[int, Query(ge=1, le=1000)]
_LABEL = re.compile(r"metadata\[(.{1,64})\]", re.DOTALL)


@router.post("")
def openai_create_job(
    body: JobIn, request: Request, session: Db, access: Run, afterwards: BackgroundTasks
) -> dict[str, Any]:
    files = ImportFiles(request.app.state.settings.artifact_url)
    job = service.create(session, request.app.state.store, files, access, body)
    detail = {"model": job.model, "plan": job.plan, "id": str(job.id)}
    audit(session, access, "fine_tuning_job.create", f"job {shown(JOB, job.id)}", detail)
    runner = getattr(request.app.state, "import_runner", None)
    if runner is not None:
        afterwards.add_task(runner.wake)
    return _out(session, job)


@router.get("")
def openai_list_jobs(
    request: Request, session: Db, access: Read, after: str | None = None, limit: Limit = 20
) -> dict[str, Any]:
    """Newest first; those with all of the labels `metadata[NAME]=VALUE`."""
    jobs = select(FineTuningJob).where(FineTuningJob.project_id == access.project.id)
    labels = {}
    for name, value in request.query_params.multi_items():
        label = _LABEL.fullmatch(name)
        if label is not None:
            labels[label[1]] = value
        elif name == "metadata":
            if value == "null":
                jobs = jobs.where(FineTuningJob.labels.is_(None))
        elif name not in ("after", "limit"):
            raise unsupported(name[:100], "is not a parameter of this list")
    if labels:
        jobs = jobs.where(FineTuningJob.labels.contains(labels))
    return page_of(session, jobs, FineTuningJob.id, JOB, lambda rows: jobs_out(session, rows), after=after, limit=limit)


@router.get("/{job}")
def openai_get_job(session: Db, access: Read, job: str) -> dict[str, Any]:
    return _out(session, service.get_job(session, access.project, job))


@router.get("/{job}/events")
def openai_list_job_events(
    session: Db, access: Read, job: str, after: str | None = None, limit: Limit = 20
) -> dict[str, Any]:
    """Newest first."""
    return events_out(session, service.get_job(session, access.project, job), after, limit)


@router.get("/{job}/checkpoints")
def openai_list_job_checkpoints(
    session: Db, access: Read, job: str, after: str | None = None, limit: Limit = 10
) -> dict[str, Any]:
    return checkpoints_out(session, service.get_job(session, access.project, job), after)


@router.post("/{job}/cancel")
def openai_cancel_job(session: Db, access: Run, job: str) -> dict[str, Any]:
    row = service.get_job(session, access.project, job, lock=True)
    service.cancel(session, row, access.actor)
    return _changed(session, access, row, "cancel")


@router.post("/{job}/pause")
def openai_pause_job(session: Db, access: Run, job: str) -> dict[str, Any]:
    row = service.get_job(session, access.project, job, lock=True)
    service.pause(session, row, access.actor)
    return _changed(session, access, row, "pause")


@router.post("/{job}/resume")
def openai_resume_job(session: Db, access: Run, job: str) -> dict[str, Any]:
    row = service.get_job(session, access.project, job, lock=True)
    service.resume(session, row, access.actor)
    return _changed(session, access, row, "resume")


def _changed(session: Session, access: Access, job: FineTuningJob, what: str) -> dict[str, Any]:
    audit(session, access, f"fine_tuning_job.{what}", f"job {shown(JOB, job.id)}", {"id": str(job.id)})
    session.flush()
    session.expire_all()
    return _out(session, job)


def _out(session: Session, job: FineTuningJob) -> dict[str, Any]:
    return jobs_out(session, [job])[0]
