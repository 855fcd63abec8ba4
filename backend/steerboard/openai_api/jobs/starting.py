"""A job gets its run: with its request, or when the import of its file has ended. Any number of processes may look."""

from __future__ import annotations

import logging
import threading
import uuid

from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.tables import Import
from steerboard.datasets.tables import Dataset
from steerboard.openai_api.jobs.planning import config_of, inputs_of
from steerboard.openai_api.jobs.schemas import JobPlan
from steerboard.openai_api.tables import FineTuningJob
from steerboard.platform.database import transaction
from steerboard.platform.names import valid_name
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.schemas.requests import RunCreate
from steerboard.runs.standalone.starting import start_run
from steerboard_contracts.errors import BadInput, ErrorLocation, SteerboardError

log = logging.getLogger(__name__)

_FILE = "training_file"


def start(session: Session, store: ArtifactStore, job: FineTuningJob, dataset: Dataset) -> None:
    """Create the run of a job, whose row the caller has locked or just made. Raises what runs refuse."""
    plan = JobPlan.model_validate(job.plan)
    settled, config = config_of(plan, job.seed, dataset.rows - dataset.held_out_rows)
    work = RunCreate(
        name=_run_name(job, plan),
        config=config,
        inputs=inputs_of(plan, str(dataset.id)),
        pool=plan.options.pool,
        priority=plan.options.priority,
        # Who sends a job pays for a training, not for the model of an earlier job.
        reuse=False,
    )
    project = session.get_one(Project, job.project_id)
    run = start_run(session, project, work, job.created_by, None, store)
    job.state, job.run_id, job.dataset_id, job.settled = "started", run.id, dataset.id, settled
    session.flush()


def _run_name(job: FineTuningJob, plan: JobPlan) -> str:
    """`MODEL-SUFFIX-abc123`, which its model is called, too."""
    tail = f"{valid_name(plan.suffix or 'ft')}-{job.id.hex[-6:]}"
    return f"{valid_name(job.model)[: 127 - len(tail)]}-{tail}"


def start_all(sessions: sessionmaker[Session], store: ArtifactStore) -> None:
    """Every job whose import has ended gets its run, or fails."""
    while (job_id := _next(sessions)) is not None:
        try:
            with transaction(sessions) as session:
                job = _locked(session, job_id)
                if job is not None:
                    start(session, store, job, _imported(session, job))
        except (SteerboardError, ValueError, LookupError, TypeError) as error:
            with transaction(sessions) as session:
                job = _locked(session, job_id)
                if job is not None:
                    _fail(job, _worded(error))


def _next(sessions: sessionmaker[Session]) -> uuid.UUID | None:
    imported = select(Import.id).where(Import.id == FineTuningJob.import_id, Import.state == "importing").exists()
    ready = select(FineTuningJob.id).where(FineTuningJob.state == "validating", ~imported)
    with transaction(sessions) as session:
        return session.scalar(ready.order_by(FineTuningJob.id).limit(1).with_for_update(skip_locked=True))


def _locked(session: Session, job_id: uuid.UUID) -> FineTuningJob | None:
    """Returns None where someone else was faster."""
    waiting = FineTuningJob.id == job_id, FineTuningJob.state == "validating"
    return session.scalar(select(FineTuningJob).where(*waiting).with_for_update())


def _imported(session: Session, job: FineTuningJob) -> Dataset:
    """Raises `BadInput` with the code and the words of the import that failed."""
    row = session.get(Import, job.import_id) if job.import_id else None
    dataset = session.get(Dataset, row.dataset_id) if row is not None and row.dataset_id else None
    if dataset is not None:
        return dataset
    if row is None or row.problem is None:
        state = row.state if row is not None else "gone"
        raise BadInput(f"the import of the training file is {state}, and made no dataset", code="no_dataset")
    report = row.report or {}
    bad = [
        ErrorLocation(location=f"{report['unit']} {row['line']}", message=row["reason"])
        for row in report.get("bad", [])
    ]
    raise BadInput(row.problem["detail"], code=str(row.problem["code"]), hint=row.problem.get("hint"), errors=bad)


def _worded(error: Exception) -> SteerboardError:
    """One that nothing expected must not keep later jobs waiting."""
    if isinstance(error, SteerboardError):
        return error
    log.exception("a fine-tuning job could not be started")
    return SteerboardError("The server hit an unexpected error; its log has the traceback.", code="internal_error")


def _fail(job: FineTuningJob, error: SteerboardError) -> None:
    faults = [f"{place.location}: {place.message}" for place in error.errors[:20]]
    message = "\n".join([error.detail, *(fault for fault in faults if fault not in error.detail)])
    message = f"{message}\n{error.hint}" if error.hint else message
    job.state, job.ended_at = "failed", func.clock_timestamp()
    job.error = {"code": error.code, "message": message[:8000], "param": _FILE if job.dataset_id is None else None}


class JobStarter:
    """A thread of the API. It polls, for imports end in other processes."""

    def __init__(self, sessions: sessionmaker[Session], store: ArtifactStore, every_seconds: float) -> None:
        self._sessions, self._store, self._every = sessions, store, every_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fine-tuning-jobs", daemon=True)

    def start(self) -> JobStarter:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            try:
                start_all(self._sessions, self._store)
            except Exception:
                log.exception("starting fine-tuning jobs failed and will be retried")
