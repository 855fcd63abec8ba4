"""What the endpoints that take a file do: hand form and file to an import process, and wait for its answer."""

from __future__ import annotations

import os
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from steerboard.accounts import idempotency
from steerboard.accounts.access import Access
from steerboard.datasets.formats.lines import size_of
from steerboard.datasets.formats.records import Source
from steerboard.datasets.imports.execution.jobs import Job
from steerboard.datasets.imports.execution.processes import ImportProcesses


def import_in_process(
    request: Request, access: Access, what: str, form: BaseModel, source: Source | None, into: str = ""
) -> Any:
    """The answer as JSON, with which the import has been committed. Raises like `ImportProcesses.run`.

    The caller's own transaction must hold no lock that the import waits for."""
    upload = source.open() if source is not None else None
    job = Job(
        what=what,
        project=access.project.id,
        actor=access.actor,
        form=form.model_dump(mode="json"),
        into=into,
        label=source.label if source is not None else None,
        size=size_of(upload) if upload is not None else 0,
        key=idempotency.hand_over(request),
        environment=dict(os.environ),
    )
    processes: ImportProcesses = request.app.state.import_processes
    return processes.run(request.app.state.settings, job, upload)
