"""Imports that a request waits for, in a process of their own (`app.import_process requests SOCKET`): of
datasets, rewards, prompt sets, answers and judgments; and the cleaning of large datasets.

One process makes several of them, one after the other, so that a small file does not wait for Python's start. Each job
comes through the socket as a line of JSON, with its file's descriptor where it has a file, and is answered by a line.
An import is one transaction, also with the answer kept for its `Idempotency-Key`: when this process is killed, or the
server that asked, nothing is stored.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from functools import cache
from typing import Any, BinaryIO

import orjson
from fastapi.encoders import jsonable_encoder
from pydantic import BaseModel
from sqlalchemy import Engine

from steerboard.accounts import idempotency
from steerboard.accounts.access import Access
from steerboard.accounts.tables import Project
from steerboard.datasets import hooks
from steerboard.datasets.imports.execution.faults import FAULTS, Work
from steerboard.datasets.imports.execution.limits import bound_memory, bounded_time, ran_out_of_memory
from steerboard.datasets.rows.row_writer import give_back_space
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.http.errors import problem_of
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import get_settings
from steerboard_contracts.errors import ErrorLocation, NoSpaceLeft, SteerboardError
from steerboard_files.errors import TooMuchWork
from steerboard_files.records import Source

log = logging.getLogger("steerboard.imports")

# People wait for the API, not for a large file; a small one is done immediately, and someone watches it.
NICENESS = 10
LARGE_BYTES = 4 * 1024 * 1024


class Job(BaseModel):
    """`what`: which of the imports, or of cleaning (`hooks.import_request`). `label` names the file that comes with the
    job, if one does. `environment` is the server's, whose settings may have changed since this process began."""

    what: str
    work: Work = "import"
    project: uuid.UUID
    actor: str
    form: dict[str, Any]
    into: str
    label: str | None
    size: int
    key: idempotency.Key | None
    environment: dict[str, str]

    @property
    def large(self) -> bool:
        """Whether its process gets a lower priority, and takes no other job after it."""
        return self.work == "cleaning" or self.size > LARGE_BYTES


class Failure(BaseModel):
    """An error on its way to another process, with all that its problem document shows."""

    title: str
    status: int
    code: str
    detail: str
    hint: str | None
    errors: list[ErrorLocation]
    extra: dict[str, Any]

    @classmethod
    def of(cls, error: SteerboardError) -> Failure:
        return cls(
            title=error.title,
            status=error.status,
            code=error.code,
            detail=error.detail,
            hint=error.hint,
            errors=error.errors,
            extra=jsonable_encoder(error.extra),
        )

    def error(self) -> SteerboardError:
        error = SteerboardError(self.detail, code=self.code, hint=self.hint, errors=self.errors, extra=self.extra)
        error.title, error.status = self.title, self.status
        return error


class Done(BaseModel):
    """The end of a job: its answer, or why it has none. `spent`: it met a limit, and this process is worn."""

    answer: Any = None
    failure: Failure | None = None
    spent: bool = False


def run(job: Job, file: int | None) -> Done:
    """Import, all of it or nothing. `file` is a descriptor of the upload."""
    for name in os.environ.keys() - job.environment.keys():
        del os.environ[name]
    os.environ.update(job.environment)
    get_settings.cache_clear()
    settings = get_settings()
    engine = _engine(settings.database_url)
    bound_memory(settings.import_memory_mb)
    upload = os.fdopen(file, "rb") if file is not None else None
    try:
        with bounded_time(settings.import_seconds, FAULTS[job.work].timed_out):
            return Done(answer=_import(job, upload, engine))
    except Exception as error:
        if ran_out_of_memory(error):
            problem: SteerboardError = FAULTS[job.work].out_of_memory(settings.import_memory_mb)
        else:
            problem = problem_of(error) or _unexpected(job)
    if isinstance(problem, NoSpaceLeft):
        give_back_space(engine)
    spent = isinstance(problem, TooMuchWork)
    if spent and upload is not None and not problem.errors:
        at = f"{os.lseek(upload.fileno(), 0, os.SEEK_CUR):,} of {job.size:,} bytes had been read"
        problem.errors = [ErrorLocation(location=job.label or "file", message=at)]
    return Done(failure=Failure.of(problem), spent=spent)


def _unexpected(job: Job) -> SteerboardError:
    log.exception("%s of %s failed", job.work, job.label or job.into or job.what)
    return SteerboardError(f"The {job.work} hit an unexpected error; its log has the traceback.")


def _import(job: Job, upload: BinaryIO | None, engine: Engine) -> Any:
    source = Source(job.label or "upload", lambda: upload) if upload is not None else None
    with transaction(make_sessions(engine)) as session:
        by = Access(session.get_one(Project, job.project), job.actor, frozenset())
        answer = hooks.import_request(job.what, session, by, hooks.ToImport(job.form, source, job.into))
        if job.key is not None:
            job.key.keep(session, Secrets(get_settings()), 201, answer.model_dump_json())
        return answer.model_dump(mode="json")


@cache
def _engine(url: str) -> Engine:
    return make_engine(url, pool_size=1)


def serve(channel: socket.socket) -> None:
    """Works on jobs until the server closes its end."""
    lines = channel.makefile("rb")
    while True:
        # The byte before each job carries the descriptor.
        started, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
        line = lines.readline() if started else b""
        if not line.endswith(b"\n"):
            return
        job = Job.model_validate_json(line)
        if job.large:
            os.nice(NICENESS)
        done = run(job, descriptors[0] if descriptors else None)
        channel.sendall(orjson.dumps(done.model_dump(mode="json")) + b"\n")


def main(arguments: list[str]) -> int:
    """`arguments`: the socket's descriptor."""
    logging.basicConfig(level=get_settings().log_level, format="%(asctime)s %(levelname)s %(message)s")
    serve(socket.socket(fileno=int(arguments[0])))
    return 0
