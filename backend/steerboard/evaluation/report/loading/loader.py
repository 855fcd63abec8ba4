"""Reads what a report is made of: a fixed number of queries for each table, whatever the evaluation holds."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Subquery, case, func, select, type_coerce
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Session
from sqlalchemy.types import Integer

from steerboard.evaluation import service
from steerboard.evaluation.divergence import kl_to_of
from steerboard.evaluation.held_out_changes import changes_of_pairs, changes_of_prompts
from steerboard.evaluation.prompts.service import said_of
from steerboard.evaluation.recipe_runs import section_of
from steerboard.evaluation.report.data import Answers, EntrantFacts, EvaluationData, RewardFacts
from steerboard.evaluation.report.loading.campaigns import campaigns_of
from steerboard.evaluation.report.loading.costs import entrant_costs
from steerboard.evaluation.report.loading.judge_facts import juries_of
from steerboard.evaluation.report.loading.judges import judges_of
from steerboard.evaluation.report.loading.lineage import teachers_upstream
from steerboard.evaluation.report.loading.positions import (
    number_columns,
    places_of,
    prompt_facts,
    rows_at,
    rows_by_position,
)
from steerboard.evaluation.report.loading.texts import text_facts
from steerboard.evaluation.report.training import training_of
from steerboard.evaluation.tables import Entrant, Evaluation, Response, RewardAssessment, RewardValue
from steerboard.registry.tables import Model
from steerboard.runs.results.benchmarks import newest_benchmarks
from steerboard.runs.tables import Run
from steerboard_contracts.held_out_changes import HeldOutChange, merged
from steerboard_contracts.prompts import Normaliser


def read(session: Session, evaluation: Evaluation) -> EvaluationData:
    """Everything at once; call it in a transaction that sees one moment (`REPEATABLE READ`)."""
    prompts = prompt_facts(session, evaluation)
    rows = {prompt.position: row for row, prompt in enumerate(prompts)}
    row_of = rows_by_position(rows)
    entrants = _entrants(session, evaluation)
    columns = {entrant.id: column for column, entrant in enumerate(entrants)}
    places = places_of(evaluation)
    judges = judges_of(session, evaluation, places, row_of)
    calibrated_on = [calibration.dataset for judge in judges for calibration in judge.calibrations]
    return EvaluationData(
        id=evaluation.id,
        name=evaluation.name,
        version=evaluation.version,
        seed=evaluation.seed,
        checked=[str(dataset["name"]) for dataset in evaluation.checked_against],
        unfinished=service.unfinished(session, evaluation),
        prompts_from=said_of(evaluation.prompts_from),
        prompts=prompts,
        entrants=entrants,
        answers=_answers(session, places, row_of),
        texts=text_facts(session, places, len(entrants)),
        judges=judges,
        juries=juries_of(session, evaluation),
        rewards=_rewards(session, evaluation, places, row_of),
        campaigns=campaigns_of(session, evaluation, rows, columns),
        held_out_changes=merged(
            changes_of_prompts(session, evaluation), changes_of_pairs(session, evaluation.project_id, calibrated_on)
        ),
        recipe=section_of(session, evaluation),
        kl_to=kl_to_of(evaluation),
        costs=entrant_costs(session, evaluation),
    )


def _entrants(session: Session, evaluation: Evaluation) -> list[EntrantFacts]:
    rows = session.execute(
        select(Entrant, Model)
        .outerjoin(Model, Model.id == Entrant.model_id)
        .where(Entrant.evaluation_id == evaluation.id)
        .order_by(Entrant.position, Entrant.id)
    ).all()
    upstream = teachers_upstream(session, [model for _, model in rows if model is not None])
    return [_facts(entrant, model, upstream) for entrant, model in rows]


def _facts(entrant: Entrant, model: Model | None, upstream: dict[uuid.UUID, frozenset[str]]) -> EntrantFacts:
    return EntrantFacts(
        id=entrant.id,
        name=entrant.name,
        source=entrant.source,
        method=entrant.method or (model.method if model else None),
        family=entrant.family,
        score=entrant.score,
        best_of=entrant.best_of,
        chosen_by=entrant.chosen_by,
        samples=entrant.samples,
        model=model.name if model else None,
        content_hash=entrant.content_hash,
        # A base model was trained elsewhere, no one here knows on what.
        known_origin=model is not None and model.role != "base",
        trained_on=(upstream.get(model.id, frozenset()) if model else frozenset()) | _chosen_by(entrant),
        summed_rewards=_summed_rewards(model) if model else None,
        training=training_of(model),
        decoding=entrant.decoding,
    )


def _chosen_by(entrant: Entrant) -> frozenset[str]:
    """The reward model that chose among an entrant's answers: no more independent of them than one that taught it."""
    best_of = entrant.decoding.get("best_of")
    return frozenset([best_of["content_hash"]]) if best_of else frozenset()


def _summed_rewards(model: Model) -> Normaliser | None:
    """`info` came from a file, which may be anyone's."""
    try:
        normaliser = Normaliser.model_validate(model.info.get("normaliser"))
    except ValidationError:
        return None
    return normaliser if normaliser.parts else None


def _answers(session: Session, places: Subquery, row_of: np.ndarray[Any, np.dtype[np.int64]]) -> Answers:
    turn = func.jsonb_array_elements_text(Response.turns).table_valued("value", with_ordinality="n").alias("turn")
    lengths = select(func.array_agg(func.char_length(turn.c.value)).label("of")).scalar_subquery()
    short: ColumnElement[Any] = Response.finished.op("@>")(type_coerce([False], JSONB))
    # Imported answers have null as JSON here, which contains nothing.
    cut = case((func.jsonb_typeof(Response.finished) == "array", short))
    rows = session.execute(
        select(
            *(Response.position, places.c.place, Response.sample, cut),
            *(Response.log_ratio, Response.log_prob, Response.log_prob_tokens),
            type_coerce(lengths, ARRAY(Integer)),
            Response.tokens,
        )
        .join(places, places.c.id == Response.entrant_id)
        .order_by(places.c.place, Response.position, Response.sample)
    ).all()
    position, entrant, sample, truncated, log_ratio, log_prob, log_prob_tokens = number_columns(
        [row[:7] for row in rows], 7
    )
    turns = max((len(row[7] or ()) for row in rows), default=1)
    characters = np.zeros((len(rows), turns), dtype=np.int64)
    tokens = np.full(len(rows), np.nan)
    for place, (*_, of_turns, own) in enumerate(rows):
        characters[place, : len(of_turns or ())] = of_turns or ()
        if own and None not in own:
            tokens[place] = sum(own)
    row = rows_at(row_of, position)
    kept = row >= 0
    return Answers(
        row=row[kept],
        entrant=entrant.astype(np.int64)[kept],
        sample=sample.astype(np.int64)[kept],
        characters=characters[kept],
        truncated=truncated[kept],
        tokens=tokens[kept],
        log_ratio=log_ratio[kept],
        log_prob=log_prob[kept],
        log_prob_tokens=log_prob_tokens[kept],
    )


def _rewards(
    session: Session, evaluation: Evaluation, places: Subquery, row_of: np.ndarray[Any, np.dtype[np.int64]]
) -> list[RewardFacts]:
    assessments = session.execute(
        select(RewardAssessment, Run.state)
        .outerjoin(Run, Run.id == RewardAssessment.run_id)
        .where(RewardAssessment.evaluation_id == evaluation.id)
        .order_by(RewardAssessment.id)
    ).all()
    hashes = {assessment.content_hash for assessment, _ in assessments}
    benchmarks = newest_benchmarks(session, evaluation.project_id, hashes)
    made = []
    for assessment, state in assessments:
        rows = session.execute(
            select(RewardValue.position, places.c.place, RewardValue.sample, RewardValue.value)
            .join(places, places.c.id == RewardValue.entrant_id)
            .where(RewardValue.assessment_id == assessment.id)
            .order_by(places.c.place, RewardValue.position, RewardValue.sample)
        ).all()
        position, entrant, sample, value = number_columns(rows, 4)
        row = rows_at(row_of, position)
        kept = (row >= 0) & np.isfinite(value)
        made.append(
            RewardFacts(
                id=assessment.id,
                name=assessment.name,
                content_hash=assessment.content_hash,
                state=state or "pending",
                normaliser=Normaliser.model_validate(assessment.normaliser) if assessment.normaliser else None,
                summary=assessment.summary,
                row=row[kept],
                entrant=entrant.astype(np.int64)[kept],
                sample=sample.astype(np.int64)[kept],
                values=value[kept],
                benchmarks=benchmarks.get(assessment.content_hash, []),
                held_out_changes=_of_its_pairs(session, evaluation, assessment),
            )
        )
    return made


def _of_its_pairs(session: Session, evaluation: Evaluation, assessment: RewardAssessment) -> list[HeldOutChange]:
    dataset = (assessment.summary or {}).get("dataset")
    return changes_of_pairs(session, evaluation.project_id, [dataset]) if dataset else []
