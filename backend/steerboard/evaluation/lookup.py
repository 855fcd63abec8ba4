"""Evaluations by name or id, and by a run that works for a part of them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.tables import Entrant, Evaluation, RewardAssessment
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import find
from steerboard.runs.errors import UnusableInput
from steerboard.runs.queries import find_stage
from steerboard.runs.tables import Run

Part = TypeVar("Part", Entrant, Judge, RewardAssessment)


def get_evaluation(session: Session, project: Project, ref: str | uuid.UUID) -> Evaluation:
    """The evaluation by id or name. Raises `NotFound` (`unknown_evaluation`), also for another project's."""
    query = select(Evaluation).where(Evaluation.project_id == project.id)
    evaluation = find(session, query, Evaluation.id, Evaluation.name, ref)
    if evaluation is None:
        hint = _to_come(session, project, str(ref)) or _LISTED
        raise NotFound(f"there is no evaluation {str(ref)!r}", code="unknown_evaluation", hint=hint)
    return evaluation


def _to_come(session: Session, project: Project, ref: str) -> str | None:
    """Why there is no evaluation PIPELINE.STAGE yet, where a stage that makes it waits."""
    waiting = Run.kind == "evaluate", Run.state == "pending", Run.started_at.is_(None)
    run = find_stage(session, select(Run).where(Run.project_id == project.id, *waiting), ref)
    return None if run is None else f"Its stage begins when what it needs is made; {run.name} is {run.reason}."


def evaluations_with(session: Session, runs: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str]]:
    """The evaluations that hold answers, rewards or verdicts of these runs, or were made for them: run and name."""
    rows = session.execute(select(Evaluation.run_id, Evaluation.name).where(Evaluation.run_id.in_(runs))).all()
    for part in (Entrant, RewardAssessment, Judge):
        named = select(part.run_id, Evaluation.name).join(Evaluation, Evaluation.id == part.evaluation_id)
        rows = [*rows, *session.execute(named.where(part.run_id.in_(runs))).all()]
    return [(run_id, name) for run_id, name in rows if run_id is not None]


_LISTED = "`steerboard evaluations list`, or GET evaluations, lists them."


def part_of_run(session: Session, run: Run, kind: type[Part], name: str) -> tuple[Evaluation, Part]:
    """What a run is for, by its config's `name`. Raises `UnusableInput` when that has been deleted."""
    part = session.get(kind, uuid.UUID(run.config[name]))
    evaluation = session.get(Evaluation, part.evaluation_id) if part else None
    if part is None or evaluation is None or evaluation.project_id != run.project_id:
        raise UnusableInput(f"the {name} of run {run.name} has been deleted", hint="Cancel the run.")
    return evaluation, part
