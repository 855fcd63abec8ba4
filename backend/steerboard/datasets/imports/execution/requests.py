"""What the endpoints that take a file do: hand form and file to an import process, and wait for its answer;
cleaning likewise."""

from __future__ import annotations

import os
import uuid
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from steerboard.accounts import idempotency
from steerboard.accounts.access import Access
from steerboard.datasets.imports.execution.faults import Work
from steerboard.datasets.imports.execution.jobs import Job
from steerboard.datasets.imports.execution.processes import ImportProcesses
from steerboard_files.lines import size_of
from steerboard_files.records import Source


def import_in_process(
    request: Request, access: Access, what: str, form: BaseModel, source: Source | None, into: str = ""
) -> Any:
    """The answer as JSON, with which the import has been committed. Raises like `ImportProcesses.run`.

    The caller's own transaction must hold no lock that the import waits for."""
    key = idempotency.hand_over(request)
    return _run(request, _job(access, "import", what, form, into, key), source)


def clean_in_process(
    request: Request, access: Access, what: str, form: BaseModel, dataset: uuid.UUID, *, stores: bool
) -> Any:
    """Cleans a dataset in a process, as `import_in_process` imports one. `stores`: whether it leaves something, with
    which the answer is kept."""
    key = idempotency.hand_over(request) if stores else None
    return _run(request, _job(access, "cleaning", what, form, str(dataset), key), None)


def _job(access: Access, work: Work, what: str, form: BaseModel, into: str, key: idempotency.Key | None) -> Job:
    return Job(
        what=what,
        work=work,
        project=access.project.id,
        actor=access.actor,
        form=form.model_dump(mode="json"),
        into=into,
        label=None,
        size=0,
        key=key,
        environment=dict(os.environ),
    )


def _run(request: Request, job: Job, source: Source | None) -> Any:
    upload = None
    if source is not None:
        upload = source.open()
        job = job.model_copy(update={"label": source.label, "size": size_of(upload)})
    processes: ImportProcesses = request.app.state.import_processes
    return processes.run(request.app.state.settings, job, upload)
