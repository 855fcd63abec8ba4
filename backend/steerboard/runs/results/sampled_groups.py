"""What an online run sampled to some prompts, step by step; read while it runs as well as afterwards."""

from __future__ import annotations

import uuid

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.platform.http.errors import NotFound
from steerboard.runs.tables import Run, SampledGroup
from steerboard_contracts.online.answer_groups import AnswerGroup


class GroupsStep(BaseModel):
    """`tied`: groups whose answers all have the same reward."""

    step: int = Field(description="The optimiser step that learned from the answers first, counted from 1.")
    groups: int
    tied: int


class RunGroups(BaseModel):
    """Steps in their order; none before the first answers are there."""

    steps: list[GroupsStep]


def groups_of(session: Session, run: Run) -> RunGroups:
    """The sampled groups of a run; those of the other run where it reuses that one's outputs. Raises `NotFound` for a
    run that keeps none."""
    if not run.config.get("inspect_groups"):
        raise NotFound(
            f"run {run.name} keeps no answers to inspect",
            hint="Only runs that sample and reward their own answers keep them, unless their `inspect_groups` is 0.",
        )
    tied = SampledGroup.document["tied"].as_boolean()
    rows = session.execute(
        select(SampledGroup.step, tied).where(SampledGroup.run_id == _owner(run)).order_by(SampledGroup.step)
    )
    steps: dict[int, GroupsStep] = {}
    for step, is_tied in rows:
        entry = steps.setdefault(step, GroupsStep(step=step, groups=0, tied=0))
        entry.groups += 1
        entry.tied += bool(is_tied)
    return RunGroups(steps=list(steps.values()))


def group_of(session: Session, run: Run, step: int, place: int) -> AnswerGroup:
    """Raises `NotFound`."""
    row = session.get(SampledGroup, (_owner(run), step, place))
    if row is None:
        raise NotFound(
            f"run {run.name} keeps no group {place} of step {step}", hint="GET /runs/{run}/groups lists the steps."
        )
    return AnswerGroup.model_validate(row.document)


def _owner(run: Run) -> uuid.UUID:
    return run.reused_from_id or run.id
