"""Reads what the report of a sweep is made of: its plan, its stages, and the figures that decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from steerboard.evaluation.recipe_stage.lookup import evaluation_of
from steerboard.evaluation.recipe_stage.stage_rewards import entrants_by_source, mean_rewards, units_of
from steerboard.evaluation.report.data import Floats
from steerboard.evaluation.rewards import assessments_of
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import NotFound
from steerboard.runs.inputs import cost_of
from steerboard.runs.pipelines.service import stages_of
from steerboard.runs.state.dropped_variants import DROPPED
from steerboard.runs.tables import Pipeline, Run
from steerboard_contracts.known_quality import KNOWN_QUALITY
from steerboard_contracts.recipes.sweep import PlannedSweep


@dataclass(frozen=True)
class StageFacts:
    """`reason`: of its state. `dropped`: successive halving has left it out."""

    state: str
    device_seconds: float
    summary: dict[str, Any]
    reason: str = ""
    dropped: bool = False


@dataclass(frozen=True)
class Rewards:
    """One reward model's mean rewards of the variants' answers: `values` (prompts, judged stages), NaN for none, in the
    order of `judged`; z where it has a normaliser."""

    judge: str
    units: str
    judged: list[str]
    values: Floats


@dataclass(frozen=True)
class SweepFacts:
    """`stages` by name. `rewards` are None before the evaluation has them; `waits_for` is the reason."""

    pipeline: str
    planned: PlannedSweep
    stages: Mapping[str, StageFacts]
    seed: int = 0
    rewards: Rewards | None = None
    waits_for: str = ""


def read_sweep(session: Session, pipeline: Pipeline) -> SweepFacts:
    """Raises `NotFound` (`no_sweep`) for a pipeline whose recipe has none."""
    given = pipeline.settings.get("sweep")
    if given is None:
        raise NotFound(f"the recipe of pipeline {pipeline.name} has no sweep", code="no_sweep")
    planned = PlannedSweep.model_validate(given)
    runs = {run.name: run for run in stages_of(session, pipeline)}
    stages = {
        name: StageFacts(
            run.state, cost_of(session, run), run.summary or {}, run.reason, dropped=run.reason_code == DROPPED
        )
        for name, run in runs.items()
    }
    if planned.stage is None:
        return SweepFacts(pipeline.name, planned, stages)
    run = runs[planned.stage]
    evaluation = evaluation_of(session, run)
    if evaluation is None:
        waits_for = "its evaluation has been deleted" if run.state == "succeeded" else f"{run.name} is {run.state}"
        return SweepFacts(pipeline.name, planned, stages, waits_for=waits_for)
    rewards = _rewards(session, run, evaluation, planned, runs)
    waits_for = "" if rewards is not None else f"{run.name} is {run.state}"
    return SweepFacts(pipeline.name, planned, stages, evaluation.seed, rewards, waits_for)


def _rewards(
    session: Session, run: Run, evaluation: Evaluation, planned: PlannedSweep, runs: Mapping[str, Run]
) -> Rewards | None:
    """Returns None until the reward model has scored."""
    given = [assessment for assessment in assessments_of(session, evaluation) if assessment.name != KNOWN_QUALITY]
    if planned.judge >= len(given):
        return None
    assessment = given[planned.judge]
    entrants = entrants_by_source(session, run, evaluation, planned.score)
    stages = {run.name: run.id for run in runs.values() if run.id in entrants}
    judged = [name for name in dict.fromkeys(variant.judged for variant in planned.variants) if name in stages]
    values = mean_rewards(session, assessment, [entrants[stages[name]] for name in judged])
    if not values.size or not np.isfinite(values).any():
        return None
    return Rewards(assessment.name, units_of(assessment), judged, values)
