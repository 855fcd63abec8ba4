"""The rules of fine-tuning jobs. Callers own the transaction; nothing here commits."""

from __future__ import annotations

import secrets

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, require
from steerboard.accounts.tables import Project
from steerboard.datasets.imports import service as imports
from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.schemas import ImportChange
from steerboard.datasets.imports.tables import WORKING, Import
from steerboard.datasets.tables import Dataset
from steerboard.openai_api.errors import unknown
from steerboard.openai_api.files import service as stored_files
from steerboard.openai_api.ids import JOB, meant
from steerboard.openai_api.jobs.planning import plan_of
from steerboard.openai_api.jobs.schemas import JobIn, JobPlan
from steerboard.openai_api.jobs.starting import start
from steerboard.openai_api.tables import FineTuningJob, OpenAIFile
from steerboard.platform.http.errors import Conflict
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.state import lifecycle, oversight
from steerboard.runs.tables import Run
from steerboard_contracts.errors import ErrorLocation, SteerboardError
from steerboard_contracts.methods import needed_method
from steerboard_contracts.samples import SampleKind
from steerboard_files.records import Source


class JobNotStarted(Conflict):
    """The job has no run yet, or never got one."""

    code = "job_not_started"
    title = "The job has no run"


def create(session: Session, store: ArtifactStore, files: ImportFiles, access: Access, request: JobIn) -> FineTuningJob:
    """A job with its run where its file is a dataset already, and otherwise with the import of it, which finds out
    whether each of its rows can be used.

    Raises like `plan_of`, `Forbidden`, and what imports and runs refuse.
    """
    plan = plan_of(session, access.project, request)
    file = stored_files.get_file(session, access.project, request.training_file)
    kind = needed_method(plan.method).data[0]
    job = FineTuningJob(
        project_id=access.project.id,
        model=request.model,
        training_file=file.id,
        plan=plan.model_dump(mode="json"),
        seed=request.seed if request.seed is not None else secrets.randbelow(2**31),
        labels=request.metadata,
        state="validating",
        created_by=access.actor,
    )
    session.add(job)
    session.flush()
    dataset = _dataset_of(session, access.project, job, plan, kind)
    if dataset is not None:
        start(session, store, job, dataset)
    else:
        require(access.scopes, "write")
        job.import_id = _import(session, store, files, access, file, plan, kind).id
    session.flush()
    session.refresh(job)
    return job


def _dataset_of(
    session: Session, project: Project, job: FineTuningJob, plan: JobPlan, kind: SampleKind
) -> Dataset | None:
    """What an earlier job has made of the same file in the same way."""
    earlier = session.execute(
        select(FineTuningJob.plan, Dataset)
        .join(Dataset, Dataset.id == FineTuningJob.dataset_id)
        .where(
            FineTuningJob.project_id == project.id,
            FineTuningJob.training_file == job.training_file,
            Dataset.kind == kind,
        )
        .order_by(FineTuningJob.id.desc())
    )
    for other, dataset in earlier:
        if _reference(JobPlan.model_validate(other)) == _reference(plan):
            return dataset
    return None


def _reference(plan: JobPlan) -> str | None:
    return plan.rewards.reference if plan.rewards is not None else None


def _import(
    session: Session,
    store: ArtifactStore,
    files: ImportFiles,
    access: Access,
    file: OpenAIFile,
    plan: JobPlan,
    kind: SampleKind,
) -> Import:
    reference = _reference(plan)
    changes = ImportChange(kind=kind, mapping={"reference": reference} if reference else {})
    try:
        with stored_files.open_content(session, store, file) as content:
            upload = Source(file.name, lambda: content)
            row = imports.create_from_upload(session, access.project, files, upload, None, access.actor)
        imports.change(session, access.project, files, row, changes)
        imports.start(session, access.project, files, row, access.actor)
    except SteerboardError as error:
        error.errors = error.errors or [ErrorLocation(location="training_file", message="cannot be used")]
        raise
    return row


def get_job(session: Session, project: Project, id_: str, *, lock: bool = False) -> FineTuningJob:
    """Raises `NotFound`, also for another project's."""
    job_id = meant(JOB, id_)
    query = select(FineTuningJob).where(FineTuningJob.project_id == project.id, FineTuningJob.id == job_id)
    job = session.scalar(query.with_for_update() if lock else query) if job_id else None
    if job is None:
        raise unknown("fine-tuning job", id_)
    return job


def cancel(session: Session, job: FineTuningJob, actor: str) -> None:
    """Raises `RunNotActive`, and `JobNotStarted` for one that has ended without a run."""
    if job.run_id is not None:
        lifecycle.request_cancel(session, session.get_one(Run, job.run_id), actor)
        return
    if job.state == "cancelled":
        return
    if job.state != "validating":
        raise JobNotStarted("the job has already failed")
    if job.import_id is not None:
        row = session.scalar(select(Import).where(Import.id == job.import_id).with_for_update())
        if row is not None and row.state in WORKING:
            imports.cancel(session, row)
    job.state, job.ended_at = "cancelled", func.clock_timestamp()


def pause(session: Session, job: FineTuningJob, actor: str) -> None:
    """Raises `RunNotPausable`, `JobNotStarted`."""
    oversight.pause(session, _run_of(session, job), actor)


def resume(session: Session, job: FineTuningJob, actor: str) -> None:
    """Raises `RunNotResumable`, `QuotaReached`, `JobNotStarted`."""
    lifecycle.resume(session, _run_of(session, job), actor)


def _run_of(session: Session, job: FineTuningJob) -> Run:
    if job.run_id is None:
        what = "its file is being validated" if job.state == "validating" else f"it has {job.state}"
        raise JobNotStarted(f"the job has no run: {what}", hint="Try again when its status is `queued` or `running`.")
    return session.get_one(Run, job.run_id)
