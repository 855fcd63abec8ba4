"""Rewards of a recipe's evaluation, by the stage or the model whose answers they are of."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.tables import Evaluation, RewardAssessment, RewardValue
from steerboard.runs.tables import Run, RunInput
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.run_kinds.evaluate import EvaluateConfig
from steerboard_statistics.bootstrap import Floats


def entrants_by_source(
    session: Session, run: Run, evaluation: Evaluation, score: Condition | None = None
) -> dict[uuid.UUID, uuid.UUID]:
    """The entrant of each stage's run, or of each model that is an input of the recipe, where it is asked for `score`:
    by place, since an evaluation may call two equal models differently."""
    given = session.scalars(select(RunInput).where(RunInput.run_id == run.id, RunInput.name.startswith("entrants.")))
    sources = {row.name: row.upstream_run_id or row.model_id for row in given}
    by_position = {entrant.position: entrant.id for entrant in entrants_of(session, evaluation)}
    entrant_of: dict[uuid.UUID, uuid.UUID] = {}
    position = 0
    for place, entrant in enumerate(EvaluateConfig.model_validate(run.config).entrants):
        scores: list[Condition | None] = list(dict.fromkeys(entrant.scores)) or [None]
        if score in scores:
            at = by_position.get(position + scores.index(score))
            source = sources.get(f"entrants.{place}")
            if at is not None and source is not None:
                entrant_of.setdefault(source, at)
        position += len(scores)
    return entrant_of


def mean_rewards(session: Session, assessment: RewardAssessment, entrants: Sequence[uuid.UUID]) -> Floats:
    """Mean over samples: (prompts, entrants), NaN where there is none; z where the reward model has a normaliser."""
    columns = {id_: column for column, id_ in enumerate(entrants)}
    values = session.execute(
        select(RewardValue.position, RewardValue.entrant_id, RewardValue.value).where(
            RewardValue.assessment_id == assessment.id, RewardValue.entrant_id.in_(entrants)
        )
    ).all()
    rows = {position: row for row, position in enumerate(sorted({position for position, _, _ in values}))}
    total, number = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for position, entrant, value in values:
        total[rows[position], columns[entrant]] += value
        number[rows[position], columns[entrant]] += 1
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    if assessment.normaliser:
        normaliser = Normaliser.model_validate(assessment.normaliser)
        means = (means - normaliser.mean) / normaliser.sd
    return means


def units_of(assessment: RewardAssessment) -> str:
    return "z" if assessment.normaliser else "raw"
