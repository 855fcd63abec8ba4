"""Reads what the report of a sweep is made of: its plan, its stages, and the figures that decide."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.recipe_stage.lookup import evaluation_of
from steerboard.evaluation.report.data import Floats
from steerboard.evaluation.rewards import KNOWN_QUALITY, assessments_of
from steerboard.evaluation.tables import Evaluation, RewardAssessment, RewardValue
from steerboard.platform.http.errors import NotFound
from steerboard.runs.inputs import cost_of
from steerboard.runs.pipelines.service import stages_of
from steerboard.runs.tables import Pipeline, Run, RunInput
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.configs import EvaluateConfig
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.sweep import PlannedSweep


@dataclass(frozen=True)
class StageFacts:
    state: str
    device_seconds: float
    summary: dict[str, Any]


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
    stages = {name: StageFacts(run.state, cost_of(session, run), run.summary or {}) for name, run in runs.items()}
    if planned.stage is None:
        return SweepFacts(pipeline.name, planned, stages)
    run = runs[planned.stage]
    evaluation = evaluation_of(session, run)
    if evaluation is None:
        waits_for = "its evaluation has been deleted" if run.state == "succeeded" else f"{run.name} is {run.state}"
        return SweepFacts(pipeline.name, planned, stages, waits_for=waits_for)
    rewards = _rewards(session, run, evaluation, planned)
    waits_for = "" if rewards is not None else f"{run.name} is {run.state}"
    return SweepFacts(pipeline.name, planned, stages, evaluation.seed, rewards, waits_for)


def _rewards(session: Session, run: Run, evaluation: Evaluation, planned: PlannedSweep) -> Rewards | None:
    """None until the reward model has scored."""
    given = [one for one in assessments_of(session, evaluation) if one.name != KNOWN_QUALITY]
    if planned.judge >= len(given):
        return None
    assessment = given[planned.judge]
    entrants = _entrants(session, run, evaluation, planned)
    judged = [name for name in dict.fromkeys(one.judged for one in planned.variants) if name in entrants]
    values = _values(session, assessment, [entrants[name] for name in judged])
    if not values.size or not np.isfinite(values).any():
        return None
    normaliser = Normaliser.model_validate(assessment.normaliser) if assessment.normaliser else None
    if normaliser is not None:
        values = (values - normaliser.mean) / normaliser.sd
    return Rewards(assessment.name, "z" if normaliser is not None else "raw", judged, values)


def _entrants(session: Session, run: Run, evaluation: Evaluation, planned: PlannedSweep) -> dict[str, uuid.UUID]:
    """The entrant of each judged stage: by place, since an evaluation may call two equal models differently."""
    made = select(RunInput.name, Run.name).join(Run, Run.id == RunInput.upstream_run_id)
    named: dict[str, str] = dict(session.execute(made.where(RunInput.run_id == run.id)).all())
    by_position = {entrant.position: entrant.id for entrant in entrants_of(session, evaluation)}
    found: dict[str, uuid.UUID] = {}
    position = 0
    for place, entrant in enumerate(EvaluateConfig.model_validate(run.config).entrants):
        scores: list[Condition | None] = list(dict.fromkeys(entrant.scores)) or [None]
        if planned.score in scores:
            at = by_position.get(position + scores.index(planned.score))
            stage = named.get(f"entrants.{place}")
            if at is not None and stage is not None:
                found.setdefault(stage, at)
        position += len(scores)
    return found


def _values(session: Session, assessment: RewardAssessment, entrants: Sequence[uuid.UUID]) -> Floats:
    """Mean over samples: (prompts, entrants), NaN where there is no reward."""
    columns = {id_: column for column, id_ in enumerate(entrants)}
    found = session.execute(
        select(RewardValue.position, RewardValue.entrant_id, RewardValue.value).where(
            RewardValue.assessment_id == assessment.id, RewardValue.entrant_id.in_(entrants)
        )
    ).all()
    rows = {position: row for row, position in enumerate(sorted({position for position, _, _ in found}))}
    total, number = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for position, entrant, value in found:
        total[rows[position], columns[entrant]] += value
        number[rows[position], columns[entrant]] += 1
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return means
