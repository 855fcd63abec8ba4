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
            hint="Only training runs of policies with a `probe` in their config answer them.",
        )
    rows = session.scalars(
        select(ProbeStep).where(ProbeStep.run_id == (run.reused_from_id or run.id)).order_by(ProbeStep.step)
    ).all()
    if not rows:
        return RunProbes(prompts=[], steps=[])
    probes = [(row.attempt, Probed.model_validate({**row.document, "step": row.step})) for row in rows]
    # Resumed with other prompts, a run has answers to those before of an earlier attempt.
    _, newest = max(probes, key=lambda item: (item[0], item[1].step))
    steps = [
        ProbedStep(step=probed.step, condition=probed.condition, answers=probed.answers)
        for _, probed in probes
        if probed.prompts == newest.prompts
    ]
    return RunProbes(prompts=newest.prompts, steps=steps)
