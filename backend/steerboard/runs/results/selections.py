"""What a finished select run found about the answers that it selected from."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.platform.http.errors import NotFound
from steerboard.runs.tables import Run, RunOutput
from steerboard_contracts.report.selection import SelectionResult


def selection_of(session: Session, run: Run) -> SelectionResult:
    """Raises `NotFound` for a run that has selected nothing."""
    found = select(RunOutput.document).where(RunOutput.run_id == run.id, RunOutput.type == "selection")
    document = session.scalar(found)
    if document is None:
        raise NotFound(f"run {run.name} has no selection", hint="A select run has one when it has succeeded.")
    return SelectionResult.model_validate(document)
