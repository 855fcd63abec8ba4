"""Imports that a request waits for, in a process of their own (`app.import_process requests SOCKET`).

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
from typing import Any

import orjson
from fastapi.encoders import jsonable_encoder
from pydantic import BaseModel
from sqlalchemy import Engine

from steerboard.accounts import idempotency
from steerboard.accounts.access import Access, audit
from steerboard.accounts.tables import Project
from steerboard.datasets.formats.hub import hub_sources
from steerboard.datasets.formats.records import Source
from steerboard.datasets.imports.loading import import_sources
from steerboard.datasets.imports.uploads import ImportForm
from steerboard.datasets.rows.row_writer import give_back_space
from steerboard.datasets.schemas import ImportReport
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.http.errors import problem_of
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import get_settings
from steerboard_contracts.errors import ErrorLocation, NoSpaceLeft, SteerboardError

log = logging.getLogger("steerboard.imports")

# People wait for the API, not for a large file; a small one is over at once, and somebody watches it.
NICENESS = 10
LARGE_BYTES = 4 * 1024 * 1024


class Job(BaseModel):
    """`label` names the file that comes with the job; without one, the form names a hub dataset. `environment` is the
    server's, whose settings may have changed since this process began."""

    project: uuid.UUID
    actor: str
    form: ImportForm
    label: str | None
    size: int
    key: idempotency.Key | None
    environment: dict[str, str]


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
    """The answer to a job: one of the two."""

    report: ImportReport | None = None
    failure: Failure | None = None


def run(job: Job, file: int | None) -> Done:
    """Import, all of it or nothing. `file` is a descriptor of the upload."""
    for name in os.environ.keys() - job.environment.keys():
        del os.environ[name]
    os.environ.update(job.environment)
    get_settings.cache_clear()
    engine = _engine(get_settings().database_url)
    try:
        return Done(report=_import(job, file, engine))
    except Exception as error:
        problem = problem_of(error)
        if problem is None:
            log.exception("the import of %s failed", job.form.name)
            problem = SteerboardError("The import met an unexpected error; its log has the traceback.")
        if isinstance(problem, NoSpaceLeft):
            give_back_space(engine)
        return Done(failure=Failure.of(problem))


def _import(job: Job, file: int | None, engine: Engine) -> ImportReport:
    settings, form = get_settings(), job.form
    origin: dict[str, Any] = {}
    if file is not None:
        sources = [Source(job.label or "upload", lambda: os.fdopen(file, "rb"))]
    else:
        sources = hub_sources(form.hub or "", settings.max_upload_mb << 20)
        origin = {"type": "hub", "hub": form.hub, "files": [part.label for part in sources]}
    with transaction(make_sessions(engine)) as session:
        project = session.get_one(Project, job.project)
        report = import_sources(
            session, project, sources=sources, name=form.name, options=form.options, actor=job.actor, origin=origin
        )
        by = Access(project, job.actor, frozenset())
        audit(session, by, "dataset.import", form.name, {"rows": report.rows, "kind": report.dataset.kind})
        if job.key is not None:
            job.key.keep(session, Secrets(settings), 201, report.model_dump_json())
        return report


@cache
def _engine(url: str) -> Engine:
    return make_engine(url, pool_size=1)


def serve(channel: socket.socket) -> None:
    """Until the server closes its end."""
    lines = channel.makefile("rb")
    while True:
        # The byte before each job carries the descriptor.
        started, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
        line = lines.readline() if started else b""
        if not line.endswith(b"\n"):
            return
        job = Job.model_validate_json(line)
        if job.size > LARGE_BYTES:
            os.nice(NICENESS)
        done = run(job, descriptors[0] if descriptors else None)
        channel.sendall(orjson.dumps(done.model_dump(mode="json")) + b"\n")


def main(arguments: list[str]) -> int:
    """`arguments`: the socket's descriptor."""
    logging.basicConfig(level=get_settings().log_level, format="%(asctime)s %(levelname)s %(message)s")
    serve(socket.socket(fileno=int(arguments[0])))
    return 0
