"""What finished runs found: a selection among answers, a combination of several rewards, or academic benchmarks."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.platform.http.errors import NotFound
from steerboard.runs.tables import Run, RunOutput
from steerboard_contracts.report.academic import AcademicResult
from steerboard_contracts.report.combination import CombinationResult
from steerboard_contracts.report.selection import SelectionResult


def selection_of(session: Session, run: Run) -> SelectionResult:
    """Raises `NotFound` for a run that has selected nothing."""
    return SelectionResult.model_validate(_document(session, run, "selection", "A select run"))


def combination_of(session: Session, run: Run) -> CombinationResult:
    """Raises `NotFound` for a run that has combined nothing."""
    return CombinationResult.model_validate(_document(session, run, "combination", "A combine run"))


def academic_result_of(session: Session, run: Run) -> AcademicResult:
    """The result with the score of every item. Raises `NotFound` for a run that has no figures."""
    return AcademicResult.model_validate(_document(session, run, "academic", "An academic run"))


def _document(session: Session, run: Run, kind: str, which: str) -> dict[str, Any]:
    query = select(RunOutput.document).where(RunOutput.run_id == run.id, RunOutput.type == kind)
    document = session.scalar(query)
    if document is None:
        raise NotFound(f"run {run.name} has no {kind}", hint=f"{which} has one after it has succeeded.")
    return document
