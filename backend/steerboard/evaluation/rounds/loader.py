"""Reads what the report of a pipeline's rounds is made of: their stages, selections, evaluations and decisions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.recipe_stage.lookup import evaluation_of
from steerboard.evaluation.recipe_stage.stage_rewards import entrants_by_source, mean_rewards, units_of
from steerboard.evaluation.report.data import Floats
from steerboard.evaluation.rewards import assessments_of
from steerboard.evaluation.tables import Evaluation, Response, RewardAssessment
from steerboard.platform.http.errors import NotFound
from steerboard.registry.promotions import former_of
from steerboard.registry.tables import Model
from steerboard.runs.inputs import cost_of, output_of, resolve_all
from steerboard.runs.ledger import ledgers
from steerboard.runs.pipelines.service import stages_of
from steerboard.runs.state.stopped_rounds import decisions, planned_rounds
from steerboard.runs.tables import Pipeline, Run, RunOutput
from steerboard_contracts.known_quality import KNOWN_QUALITY
from steerboard_contracts.recipes.rounds import PlannedRounds
from steerboard_contracts.report.decision import RoundDecision
from steerboard_contracts.report.rounds import RoundPolicy
from steerboard_contracts.report.selection import SelectionResult
from steerboard_contracts.watching.ledger import Ledger


@dataclass(frozen=True)
class StageFacts:
    kind: str
    state: str
    reason: str
    device_seconds: float
    tokens: int | None


@dataclass(frozen=True)
class Measured:
    """One evaluation by one reward model. `rewards[source]`: (prompts,), by run or model that answered, NaN for none;
    `tokens[source]`: (prompts,) of its answers."""

    stage: str
    judge: str
    independent: bool
    units: str
    seed: int
    rewards: Mapping[uuid.UUID, Floats]
    tokens: Mapping[uuid.UUID, Floats]


@dataclass(frozen=True)
class RoundsFacts:
    """`stages` by name; the others by the number of the round. `sources`: what answers for each round's policy, 0 being
    the start. `measured`: the evaluations that have rewards, the best first."""

    pipeline: str
    planned: PlannedRounds
    stages: Mapping[str, StageFacts]
    selections: Mapping[int, SelectionResult]
    policies: Mapping[int, RoundPolicy]
    decisions: Mapping[int, RoundDecision]
    sources: Mapping[int, uuid.UUID]
    measured: Sequence[Measured]


def read_rounds(session: Session, pipeline: Pipeline) -> RoundsFacts:
    """Raises `NotFound` (`no_rounds`) for a pipeline whose recipe has none."""
    planned = planned_rounds(pipeline)
    if planned is None:
        raise NotFound(f"the recipe of pipeline {pipeline.name} has no rounds", code="no_rounds")
    runs = {run.name: run for run in stages_of(session, pipeline)}
    decided = decisions(session, pipeline, planned)
    return RoundsFacts(
        pipeline=pipeline.name,
        planned=planned,
        stages=_stages(session, runs),
        selections=_selections(session, planned, runs),
        policies=_policies(session, planned, runs),
        decisions={number: decision for number, (_, decision) in decided.items()},
        sources=_sources(planned, runs),
        measured=_measured(session, planned, runs),
    )


def _stages(session: Session, runs: Mapping[str, Run]) -> dict[str, StageFacts]:
    costs = ledgers(session, list(runs.values()))
    return {
        name: StageFacts(run.kind, run.state, run.reason, cost_of(session, run), _tokens_of(run, costs[run.id]))
        for name, run in runs.items()
    }


def _tokens_of(run: Run, ledger: Ledger) -> int | None:
    """Training may read its data several times, or not all of it: the ledger has counted what its steps read."""
    if run.kind != "train":
        tokens = (run.summary or {}).get("tokens")
        return tokens if isinstance(tokens, int) else None
    if run.state != "succeeded":
        return None
    return sum(cost.tokens for cost in ledger.phases if cost.phase == "update") or None


def _selections(session: Session, planned: PlannedRounds, runs: Mapping[str, Run]) -> dict[int, SelectionResult]:
    """The last selection of each round."""
    numbers = {runs[name].id: round_.number for round_ in planned.rounds for name in round_.stages if name in runs}
    rows = session.execute(
        select(RunOutput.run_id, RunOutput.document)
        .where(RunOutput.run_id.in_(numbers), RunOutput.type == "selection")
        .order_by(RunOutput.run_id)
    )
    return {numbers[run_id]: SelectionResult.model_validate(document) for run_id, document in rows}


def _policies(session: Session, planned: PlannedRounds, runs: Mapping[str, Run]) -> dict[int, RoundPolicy]:
    policies = {}
    for round_ in planned.rounds:
        run = runs.get(round_.policy)
        model = output_of(session, run.id) if run is not None and run.state == "succeeded" else None
        if isinstance(model, Model):
            former = former_of(session, model)
            policies[round_.number] = RoundPolicy(
                id=model.id,
                name=model.name,
                in_production=model.stage == "production",
                former=former.name if former is not None else None,
            )
    return policies


def _sources(planned: PlannedRounds, runs: Mapping[str, Run]) -> dict[int, uuid.UUID]:
    sources = {round_.number: runs[round_.policy].id for round_ in planned.rounds if round_.policy in runs}
    start = planned.start_model or (runs[planned.start].id if planned.start in runs else None)
    return {0: start, **sources} if start is not None else sources


def _measured(session: Session, planned: PlannedRounds, runs: Mapping[str, Run]) -> list[Measured]:
    """The last evaluation outside of the rounds first, since it has all policies on the same prompts; then the checks,
    each of which has those of its own round."""
    checks = {round_.check for round_ in planned.rounds}
    evaluations = [run for run in runs.values() if run.kind == "evaluate"]
    others = [run for run in reversed(evaluations) if run.name not in checks]
    teachers = _teachers(session, planned, runs)
    measured = (_read(session, run, teachers) for run in (*others, *(run for run in evaluations if run.name in checks)))
    return [evaluation for evaluation in measured if evaluation is not None]


def _teachers(session: Session, planned: PlannedRounds, runs: Mapping[str, Run]) -> set[str]:
    """Content hashes of the models that scored what the rounds learned from."""
    scoring = [runs[name] for round_ in planned.rounds for name in round_.stages if name in runs]
    scoring = [run for run in scoring if run.kind == "score"]
    given = (things.get("reward") for things in resolve_all(session, scoring).values())
    return {model.artifact_hash for model in given if isinstance(model, Model)}


def _read(session: Session, run: Run, teachers: set[str]) -> Measured | None:
    evaluation = evaluation_of(session, run)
    if evaluation is None:
        return None
    judge = _judge(session, evaluation, teachers)
    if judge is None:
        return None
    entrants = entrants_by_source(session, run, evaluation)
    values = mean_rewards(session, judge, list(entrants.values()))
    if not values.size or not np.isfinite(values).any():
        return None
    return Measured(
        stage=run.name,
        judge=judge.name,
        independent=judge.content_hash not in teachers,
        units=units_of(judge),
        seed=evaluation.seed,
        rewards={source: values[:, column] for column, source in enumerate(entrants)},
        tokens=_tokens(session, entrants),
    )


def _judge(session: Session, evaluation: Evaluation, teachers: set[str]) -> RewardAssessment | None:
    """The first that taught no round; where there is none, the first."""
    given = [assessment for assessment in assessments_of(session, evaluation) if assessment.name != KNOWN_QUALITY]
    return next(
        (assessment for assessment in given if assessment.content_hash not in teachers), next(iter(given), None)
    )


def _tokens(session: Session, entrants: Mapping[uuid.UUID, uuid.UUID]) -> dict[uuid.UUID, Floats]:
    """The tokens of the last turn of each answer, where they were counted."""
    rows = session.execute(
        select(Response.entrant_id, Response.tokens)
        .where(Response.entrant_id.in_(entrants.values()), Response.sample == 0)
        .order_by(Response.position)
    )
    counted: dict[Any, list[float]] = {}
    for entrant, tokens in rows:
        if tokens:
            counted.setdefault(entrant, []).append(float(sum(tokens)))
    return {source: np.array(counted[entrant]) for source, entrant in entrants.items() if entrant in counted}
