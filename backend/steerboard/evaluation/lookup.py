"""Evaluations by name or id."""

from __future__ import annotations

import uuid

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import find


def get_evaluation(session: Session, project: Project, ref: str | uuid.UUID) -> Evaluation:
    """By id or name. Raises `NotFound` (`unknown_evaluation`), also for another project's."""
    mine = select(Evaluation).where(Evaluation.project_id == project.id)
    evaluation = find(session, mine, Evaluation.id, Evaluation.name, ref)
    if evaluation is None:
        raise NotFound(f"there is no evaluation {str(ref)!r}", code="unknown_evaluation", hint=_LISTED)
    return evaluation


_LISTED = "`steerboard evaluations list`, or GET evaluations, lists them."
