"""What a run answered to its probe prompts so far, step by step; read while it runs as well as afterwards."""

from __future__ import annotations

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.platform.http.errors import NotFound
from steerboard.runs.tables import ProbeStep, Run
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.stage.events import Probed
from steerboard_contracts.watching.probing import ProbeAnswer, ProbePrompt


class ProbedStep(BaseModel):
    """`condition`: what the model was asked for. `answers`: one for each prompt, in their order."""

    step: int = Field(description="Optimiser steps taken; 0: the model that training started from.")
    condition: Condition | None
    answers: list[ProbeAnswer]


class RunProbes(BaseModel):
    """`steps` in their order; none before the first answers are there."""

    prompts: list[ProbePrompt]
    steps: list[ProbedStep]


def probes_of(session: Session, run: Run) -> RunProbes:
    """The probe answers of a run; those of the other run where it reuses that one's outputs. Raises `NotFound` for a
    run without a probe."""
    if run.config.get("probe") is None:
        raise NotFound(
            f"run {run.name} answers no probe prompts",
            hint="Training runs of policies do when their config has a `probe`.",
        )
    rows = session.scalars(
        select(ProbeStep).where(ProbeStep.run_id == (run.reused_from_id or run.id)).order_by(ProbeStep.step)
    ).all()
    if not rows:
        return RunProbes(prompts=[], steps=[])
    found = [(row.attempt, Probed.model_validate({**row.document, "step": row.step})) for row in rows]
    # Resumed with other prompts, a run has answers to those before of an earlier attempt.
    _, newest = max(found, key=lambda one: (one[0], one[1].step))
    steps = [
        ProbedStep(step=one.step, condition=one.condition, answers=one.answers)
        for _, one in found
        if one.prompts == newest.prompts
    ]
    return RunProbes(prompts=newest.prompts, steps=steps)
