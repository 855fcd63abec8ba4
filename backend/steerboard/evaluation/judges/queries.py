"""What a judge has to judge, and what it has judged already, out of the database."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.judge_tables import JudgeAnswer, RepeatedVerdict, Verdict
from steerboard.evaluation.judges.judge_inputs import JudgedEntrant, JudgedPrompt, JudgeInputs
from steerboard.evaluation.judges.requests import Place, Question
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.tables import Evaluation, EvaluationPrompt, Response

_KEYS_AT_ONCE = 1000


@dataclass(frozen=True)
class Judged:
    """An item with a valid verdict, and the answer that it was parsed from."""

    position: int
    turn: int
    place: Place
    key: str


def judge_inputs_of(
    session: Session,
    evaluation: Evaluation,
    settings: JudgeSettings,
    *,
    assume: bool = False,
    position: int | None = None,
) -> JudgeInputs:
    """The first sample of every entrant that is judged, at one prompt or all. `assume`: as if the answers that are
    missing were there, to count the requests in advance."""
    at_prompt = [] if position is None else [EvaluationPrompt.position == position]
    at_answer = [] if position is None else [Response.position == position]
    judged = [
        JudgedEntrant(entrant.id, entrant.name)
        for entrant in entrants_of(session, evaluation)
        if settings.entrants is None or entrant.name in settings.entrants or entrant.name == settings.baseline
    ]
    prompts = [
        JudgedPrompt(prompt.position, prompt.category, prompt.messages, prompt.follow_ups, prompt.reference)
        for prompt in session.scalars(
            select(EvaluationPrompt)
            .where(EvaluationPrompt.evaluation_id == evaluation.id, *at_prompt)
            .order_by(EvaluationPrompt.position)
        )
    ]
    ids = [entrant.id for entrant in judged]
    rows = session.execute(
        select(Response.entrant_id, Response.position, Response.turns)
        .where(Response.entrant_id.in_(ids), *at_answer)
        .order_by(Response.entrant_id, Response.position, Response.sample)
        .ext(distinct_on(Response.entrant_id, Response.position))
    )
    answers: dict[tuple[uuid.UUID, int], list[str]] = {(entrant, at): turns for entrant, at, turns in rows}
    if assume:
        for entrant in ids:
            for prompt in prompts:
                there = answers.get((entrant, prompt.position), [])
                missing = prompt.turns - len(there)
                answers[entrant, prompt.position] = [*there, *(f"{entrant} {n}" for n in range(missing))]
    return JudgeInputs(prompts, judged, answers)


def judged(session: Session, judge_id: uuid.UUID) -> set[Judged]:
    """Items that need not be asked again. An error is not a verdict: it was read from no answer."""
    first, again = Verdict, RepeatedVerdict
    rows = session.execute(
        select(first.position, first.turn, first.a, first.b, first.a_first, first.answer_key)
        .where(first.judge_id == judge_id, ~first.superseded)
        .union_all(
            select(again.position, again.turn, again.a, again.b, again.a_first, again.answer_key).where(
                again.judge_id == judge_id
            )
        )
    )
    return {
        Judged(position, turn, Place(a, b, first), key) for position, turn, a, b, first, key in rows if key is not None
    }


def is_judged(question: Question, key: str, done: set[Judged]) -> bool:
    return all(Judged(question.position, question.turn, place, key) in done for place in question.places)


def answered(session: Session, project_id: uuid.UUID, keys: Iterable[str]) -> set[str]:
    """The requests, by key, that the project has an answer to."""
    wanted = list(dict.fromkeys(keys))
    keys_answered = set[str]()
    for start in range(0, len(wanted), _KEYS_AT_ONCE):
        some = JudgeAnswer.key.in_(wanted[start : start + _KEYS_AT_ONCE])
        keys_answered.update(session.scalars(select(JudgeAnswer.key).where(JudgeAnswer.project_id == project_id, some)))
    return keys_answered
