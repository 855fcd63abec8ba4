"""Cleaning a large dataset, in a process of its own: the API's other requests would wait for Python's lock.

The process gets its job as one line of JSON through a socket, answers with one line, and ends. A new version is made
in one transaction, with the answer that is kept for the request's `Idempotency-Key`.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import uuid
from typing import Any

import orjson
from pydantic import BaseModel

from steerboard.accounts import idempotency
from steerboard.accounts.access import Access, audit
from steerboard.accounts.tables import Project
from steerboard.datasets import hooks
from steerboard.datasets.cleaning import service
from steerboard.datasets.cleaning.schemas import CleaningCreate, CleaningPreview, CleaningPreviewIn
from steerboard.datasets.errors import CleaningInterrupted
from steerboard.datasets.imports.execution.jobs import NICENESS, Failure
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.http.errors import problem_of
from steerboard.platform.processes.child_process import Guarded, GuardedSpec
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings, get_settings
from steerboard_contracts.errors import SteerboardError

log = logging.getLogger("steerboard.cleaning")

# Rows that may be cleaned within a request: a quarter of a second.
ROWS_AT_ONCE = 2000
_AT_ONCE = threading.BoundedSemaphore(2)


class CleaningJob(BaseModel):
    """One of `preview` and `create`."""

    project: uuid.UUID
    dataset: uuid.UUID
    actor: str
    preview: CleaningPreviewIn | None = None
    create: CleaningCreate | None = None
    key: idempotency.Key | None = None


class Done(BaseModel):
    """The answer to a job: one of the three."""

    preview: CleaningPreview | None = None
    created: DatasetOut | None = None
    failure: Failure | None = None


def run(settings: Settings, job: CleaningJob) -> Done:
    """Waits for the end of the process. Raises what the job raises, and `CleaningInterrupted`."""
    ours, theirs = socket.socketpair()
    folder = settings.home / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    with _AT_ONCE, ours:
        with theirs:
            spec = GuardedSpec(
                name="the process that cleans",
                command=[sys.executable, "-m", hooks.cleaning_process(), str(theirs.fileno())],
                log=folder / "cleaning.log",
                # A transaction that is cut off is rolled back; there is nothing to do in order.
                stop=[(signal.SIGKILL, 5.0)],
                inherit=[theirs.fileno()],
            )
            process = Guarded(spec)
        try:
            with ours.makefile("rwb") as channel:
                channel.write(job.model_dump_json().encode() + b"\n")
                channel.flush()
                answer = channel.readline()
        except OSError:
            answer = b""
        finally:
            process.stop()
    if not answer.endswith(b"\n"):
        raise CleaningInterrupted(
            "the process that cleaned the dataset ended prematurely",
            hint="The server may have run out of memory; its cleaning.log may show why.",
        )
    done = Done.model_validate_json(answer)
    if done.failure is not None:
        raise done.failure.error()
    return done


def main(arguments: list[str]) -> int:
    """`arguments`: the socket's descriptor."""
    settings = get_settings()
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(message)s")
    os.nice(NICENESS)
    with socket.socket(fileno=int(arguments[0])) as channel, channel.makefile("rwb") as lines:
        done = _work(settings, CleaningJob.model_validate_json(lines.readline()))
        lines.write(orjson.dumps(done.model_dump(mode="json")) + b"\n")
    return 0


def _work(settings: Settings, job: CleaningJob) -> Done:
    sessions = make_sessions(make_engine(settings.database_url, pool_size=1))
    try:
        with transaction(sessions) as session:
            project, dataset = session.get_one(Project, job.project), session.get_one(Dataset, job.dataset)
            if job.preview is not None:
                return Done(preview=service.preview(session, project, dataset, job.preview))
            assert job.create is not None
            made = service.clean(session, project, dataset, job.create, job.actor)
            note(session, Access(project, job.actor, frozenset()), dataset, made)
            created = dataset_out(session, made)
            if job.key is not None:
                job.key.keep(session, Secrets(settings), 201, created.model_dump_json())
            return Done(created=created)
    except Exception as error:
        problem = problem_of(error)
        if problem is None:
            log.exception("cleaning dataset %s failed", job.dataset)
            problem = SteerboardError("Cleaning hit an unexpected error; its log has the traceback.")
        return Done(failure=Failure.of(problem))


def note(session: Any, access: Access, dataset: Dataset, made: Dataset) -> None:
    """Who cleaned what."""
    detail = {"dataset": made.name, "rows": made.rows, "dropped": made.origin["dropped"]}
    audit(session, access, "dataset.clean", dataset.name, detail)
