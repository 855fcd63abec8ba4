"""Reads what a report is made of: a fixed number of queries for each table, whatever the evaluation holds."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Subquery, func, select, type_coerce
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Session
from sqlalchemy.types import Integer

from steerboard.evaluation import service
from steerboard.evaluation.divergence import kl_to_of
from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, Verdict
from steerboard.evaluation.prompts.service import said_of
from steerboard.evaluation.recipe_runs import report_of
from steerboard.evaluation.report.calibrations import accuracy, calibrations_of, prompts_of
from steerboard.evaluation.report.campaigns import campaigns_of
from steerboard.evaluation.report.costs import entrant_costs
from steerboard.evaluation.report.data import (
    Answers,
    EvaluationData,
    Floats,
    JudgeFacts,
    PromptFacts,
    RewardFacts,
    Verdicts,
    Who,
)
from steerboard.evaluation.report.judge_facts import costs_of, juries_of, repeats_of
from steerboard.evaluation.report.lineage import reward_models_upstream
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response, RewardAssessment, RewardValue
from steerboard.registry.tables import Model
from steerboard.runs.results.benchmarks import newest_benchmarks
from steerboard.runs.tables import Run
from steerboard_contracts.prompts import Normaliser


def read(session: Session, evaluation: Evaluation) -> EvaluationData:
    """Everything at once; call it in a transaction that sees one moment (`REPEATABLE READ`)."""
    prompts = _prompts(session, evaluation)
    rows = {prompt.position: row for row, prompt in enumerate(prompts)}
    row_of = _row_of(rows)
    entrants = _entrants(session, evaluation)
    columns = {entrant.id: column for column, entrant in enumerate(entrants)}
    places = _places(evaluation)
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
        judges=_judges(session, evaluation, places, row_of),
        juries=juries_of(session, evaluation),
        rewards=_rewards(session, evaluation, places, row_of),
        campaigns=campaigns_of(session, evaluation, rows, columns),
        recipe=report_of(session, evaluation),
        kl_to=kl_to_of(evaluation),
        costs=entrant_costs(session, evaluation),
    )


def _prompts(session: Session, evaluation: Evaluation) -> list[PromptFacts]:
    found = session.execute(
        select(
            EvaluationPrompt.position,
            EvaluationPrompt.question_id,
            EvaluationPrompt.category,
            func.jsonb_array_length(EvaluationPrompt.follow_ups),
            EvaluationPrompt.seen,
        )
        .where(EvaluationPrompt.evaluation_id == evaluation.id)
        .order_by(EvaluationPrompt.position)
    )
    return [PromptFacts(position, name, category, 1 + more, seen) for position, name, category, more, seen in found]


def _entrants(session: Session, evaluation: Evaluation) -> list[Who]:
    found = session.execute(
        select(Entrant, Model)
        .outerjoin(Model, Model.id == Entrant.model_id)
        .where(Entrant.evaluation_id == evaluation.id)
        .order_by(Entrant.position, Entrant.id)
    ).all()
    upstream = reward_models_upstream(session, [model for _, model in found if model is not None])
    return [_who(entrant, model, upstream) for entrant, model in found]


def _who(entrant: Entrant, model: Model | None, upstream: dict[uuid.UUID, frozenset[str]]) -> Who:
    return Who(
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
        # A base model was trained elsewhere, nobody here knows on what.
        known_origin=model is not None and model.role != "base",
        trained_on=(upstream.get(model.id, frozenset()) if model else frozenset()) | _chosen_by(entrant),
        summed_rewards=_summed_rewards(model) if model else None,
        decoding=entrant.decoding,
    )


def _chosen_by(entrant: Entrant) -> frozenset[str]:
    """The reward model that chose among an entrant's answers: no more independent of them than one that taught it."""
    best_of = entrant.decoding.get("best_of")
    return frozenset([best_of["content_hash"]]) if best_of else frozenset()


def _summed_rewards(model: Model) -> Normaliser | None:
    """`info` came from a file, which may be anybody's."""
    try:
        normaliser = Normaliser.model_validate(model.info.get("normaliser"))
    except ValidationError:
        return None
    return normaliser if normaliser.parts else None


def _places(evaluation: Evaluation) -> Subquery:
    """Each entrant with its column, so that rows carry small numbers and no ids."""
    place = func.row_number().over(order_by=(Entrant.position, Entrant.id)) - 1
    return select(Entrant.id, place.label("place")).where(Entrant.evaluation_id == evaluation.id).subquery()


def _columns(rows: Sequence[Any], width: int) -> list[Floats]:
    """The columns of number rows, None as NaN."""
    if not rows:
        return [np.empty(0)] * width
    return list(np.array([tuple(row) for row in rows], dtype=np.float64).T)


def _row_of(rows: Mapping[int, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The row of each position as an array, -1 for one that is no prompt; its last item is -1."""
    row_of = np.full(max(rows, default=-1) + 2, -1, dtype=np.int64)
    for position, row in rows.items():
        row_of[position] = row
    return row_of


def _rows_of(row_of: np.ndarray[Any, np.dtype[np.int64]], positions: Floats) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows of positions; -1 for one that is no prompt."""
    at = positions.astype(np.int64)
    return row_of[np.where((at >= 0) & (at < len(row_of)), at, len(row_of) - 1)]


def _answers(session: Session, places: Subquery, row_of: np.ndarray[Any, np.dtype[np.int64]]) -> Answers:
    turn = func.jsonb_array_elements_text(Response.turns).table_valued("value", with_ordinality="n").alias("turn")
    lengths = select(func.array_agg(func.char_length(turn.c.value)).label("of")).scalar_subquery()
    cut: ColumnElement[Any] = Response.finished.op("@>")(type_coerce([False], JSONB))
    found = session.execute(
        select(
            *(Response.position, places.c.place, Response.sample, cut, Response.log_ratio),
            type_coerce(lengths, ARRAY(Integer)),
        )
        .join(places, places.c.id == Response.entrant_id)
        .order_by(places.c.place, Response.position, Response.sample)
    ).all()
    position, entrant, sample, truncated, log_ratio = _columns([row[:5] for row in found], 5)
    turns = max((len(row[5] or ()) for row in found), default=1)
    characters = np.zeros((len(found), turns), dtype=np.int64)
    for place, (*_, of_turns) in enumerate(found):
        characters[place, : len(of_turns or ())] = of_turns or ()
    row = _rows_of(row_of, position)
    kept = row >= 0
    return Answers(
        row=row[kept],
        entrant=entrant.astype(np.int64)[kept],
        sample=sample.astype(np.int64)[kept],
        characters=characters[kept],
        truncated=truncated[kept],
        log_ratio=log_ratio[kept],
    )


def _judges(
    session: Session, evaluation: Evaluation, places: Subquery, row_of: np.ndarray[Any, np.dtype[np.int64]]
) -> list[JudgeFacts]:
    judges = session.execute(
        select(Judge, Run.state)
        .outerjoin(Run, Run.id == Judge.run_id)
        .where(Judge.evaluation_id == evaluation.id)
        .order_by(Judge.id)
    ).all()
    if not judges:
        return []
    of_these = Verdict.judge_id.in_([judge.id for judge, _ in judges])
    number = {judge.id: place for place, (judge, _) in enumerate(judges)}
    counts: dict[uuid.UUID, dict[str, int]] = {judge.id: {} for judge, _ in judges}
    for judge_id, status, superseded, n in session.execute(
        select(Verdict.judge_id, Verdict.status, Verdict.superseded, func.count())
        .where(of_these)
        .group_by(Verdict.judge_id, Verdict.status, Verdict.superseded)
    ):
        name = "superseded" if superseded else status
        counts[judge_id][name] = counts[judge_id].get(name, 0) + n
    verdicts = _verdicts(session, number, places, row_of)
    asked = [judge for judge, _ in judges]
    repeats = repeats_of(session, asked, lambda positions: _rows_of(row_of, positions))
    costs = costs_of(session, asked)
    calibrated = calibrations_of(session, evaluation, asked)
    tokens = _tokens(session, list(number))
    return [
        JudgeFacts(
            id=judge.id,
            name=judge.name,
            style=judge.style,
            model=judge.model,
            family=judge.family,
            content_hash=judge.content_hash,
            settings=judge.settings,
            imported=judge.imported is not None,
            state=state or ("imported" if judge.imported is not None else "pending"),
            prompt_tokens=tokens.get(judge.id, (None, None))[0],
            completion_tokens=tokens.get(judge.id, (None, None))[1],
            statuses=counts[judge.id],
            verdicts=verdicts[number[judge.id]],
            unreadable=judge.unreadable,
            repeats=repeats.get(judge.id),
            calibrations=tuple(
                accuracy(pairs, known, verdicts_of(session, pairs, known), prompts_of(session, pairs))
                for pairs, known in calibrated.get(judge.id, ())
            ),
            cost=costs[judge.id],
        )
        for judge, state in judges
    ]


def verdicts_of(session: Session, evaluation: Evaluation, judge: Judge) -> Verdicts:
    """Those of one judge, in rows of prompts and columns of entrants by position."""
    row_of = _row_of({one.position: row for row, one in enumerate(_prompts(session, evaluation))})
    (found,) = _verdicts(session, {judge.id: 0}, _places(evaluation), row_of)
    return found


def _verdicts(
    session: Session,
    number: dict[uuid.UUID, int],
    places: Subquery,
    row_of: np.ndarray[Any, np.dtype[np.int64]],
) -> list[Verdicts]:
    """Of each judge by its number, in the order of items."""
    a, b = places.alias("a"), places.alias("b")
    columns: list[Floats] = []
    of: list[int] = []
    # One query a judge keeps its rows apart without an id in each of them; there are few judges.
    for judge_id, place in number.items():
        found = session.execute(
            select(
                Verdict.position,
                Verdict.turn,
                a.c.place,
                func.coalesce(b.c.place, -1),
                func.coalesce(func.cast(Verdict.a_first, Integer), -1),
                Verdict.value,
                Verdict.weight,
                func.cast(Verdict.status == "ok", Integer),
            )
            .join(a, a.c.id == Verdict.a)
            .outerjoin(b, b.c.id == Verdict.b)
            .where(Verdict.judge_id == judge_id, ~Verdict.superseded)
            .order_by(Verdict.position, Verdict.id)
        ).all()
        columns.append(np.array([tuple(row) for row in found], dtype=np.float64).reshape(-1, 8))
        of.append(place)
    made: list[Verdicts] = [_as_verdicts(table, row_of) for table in columns]
    return [made[of.index(place)] for place in range(len(number))]


def _as_verdicts(table: Floats, row_of: np.ndarray[Any, np.dtype[np.int64]]) -> Verdicts:
    row = _rows_of(row_of, table[:, 0])
    kept = row >= 0
    table, row = table[kept], row[kept]
    ok = (table[:, 7] == 1) & np.isfinite(table[:, 5])
    whole = table[:, [1, 2, 3, 4, 6]].astype(np.int64)
    return Verdicts(
        row=row,
        turn=whole[:, 0],
        a=whole[:, 1],
        b=whole[:, 2],
        a_first=whole[:, 3],
        value=np.where(ok, table[:, 5], np.nan),
        weight=whole[:, 4],
        ok=ok,
    )


def _tokens(session: Session, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[int | None, int | None]]:
    """What each judge paid for; a stored answer cost it nothing."""
    found = session.execute(
        select(JudgeAnswer.judge_id, func.sum(JudgeAnswer.prompt_tokens), func.sum(JudgeAnswer.completion_tokens))
        .where(JudgeAnswer.judge_id.in_(ids))
        .group_by(JudgeAnswer.judge_id)
    )
    return {
        judge: (None if one is None else int(one), None if two is None else int(two))
        for judge, one, two in found
        if judge is not None
    }


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
        found = session.execute(
            select(RewardValue.position, places.c.place, RewardValue.sample, RewardValue.value)
            .join(places, places.c.id == RewardValue.entrant_id)
            .where(RewardValue.assessment_id == assessment.id)
            .order_by(places.c.place, RewardValue.position, RewardValue.sample)
        ).all()
        position, entrant, sample, value = _columns(found, 4)
        row = _rows_of(row_of, position)
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
            )
        )
    return made
