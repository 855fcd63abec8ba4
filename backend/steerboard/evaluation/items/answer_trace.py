"""One answer traced: the prompt that the model was given, how it answered, and every reward and verdict on it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of, turns_before_last
from steerboard.evaluation.entrants.service import decoding_of, get_entrant
from steerboard.evaluation.items.calls import cost_of, was_there
from steerboard.evaluation.items.schemas import CallMessage, ItemVerdict
from steerboard.evaluation.items.trace_schemas import AnswerReward, AnswerTrace, AnswerTurn, AnswerVerdict
from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, Verdict
from steerboard.evaluation.judges.presenters import verdict_out
from steerboard.evaluation.tables import (
    Entrant,
    Evaluation,
    EvaluationPrompt,
    Response,
    RewardAssessment,
    RewardValue,
)
from steerboard.platform.http.errors import NotFound
from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.tables import Run

_MOST_VERDICTS = 100


def answer_trace(session: Session, evaluation: Evaluation, position: int, ref: str, sample: int) -> AnswerTrace:
    """Raises `NotFound` (`unknown_entrant`, `unknown_answer`)."""
    entrant = get_entrant(session, evaluation, ref)
    if entrant is None:
        known = ", ".join(listed.name for listed in entrants_of(session, evaluation))
        raise NotFound(f"there is no entrant {ref!r}; there are {known or 'none'}", code="unknown_entrant")
    response = session.get(Response, (entrant.id, position, sample))
    prompt = session.get(EvaluationPrompt, (evaluation.id, position))
    if response is None or prompt is None:
        raise NotFound(
            f"{entrant.name} has no answer {sample} to prompt {position}",
            code="unknown_answer",
            hint="GET items/POSITION lists the answers that there are.",
        )
    run = session.get(Run, entrant.run_id) if entrant.run_id else None
    model = session.get(Model, entrant.model_id) if entrant.model_id else None
    endpoint = session.get(Endpoint, entrant.endpoint_id) if entrant.endpoint_id else None
    made_here = entrant.source != "import"
    verdicts, more = _verdicts(session, evaluation, entrant, position) if sample == 0 else ([], False)
    return AnswerTrace(
        entrant=entrant.name,
        source=entrant.source,
        model=model.name if model else None,
        endpoint=endpoint.name if endpoint else None,
        position=position,
        sample=sample,
        engine=run.config.get("engine") if run is not None and entrant.source == "model" else None,
        decoding=decoding_of(entrant),
        temperature=_temperature(entrant, prompt),
        seed=evaluation.seed if made_here else None,
        turns=_turns(prompt, response),
        rewards=_rewards(session, evaluation, response),
        verdicts=verdicts,
        more_verdicts=more,
    )


def _turns(prompt: EvaluationPrompt, response: Response) -> list[AnswerTurn]:
    def at(values: Sequence[Any] | None, turn: int) -> Any:
        return values[turn] if values is not None and turn < len(values) else None

    return [
        AnswerTurn(
            messages=[
                CallMessage.model_validate(message)
                for message in turns_before_last(prompt.messages, prompt.follow_ups, response.turns[: turn + 1])
            ],
            prompt=at(response.prompts, turn),
            answer=answer,
            prompt_tokens=at(response.prompt_tokens, turn),
            tokens=at(response.tokens, turn),
            finished=at(response.finished, turn),
            seconds=at(response.seconds, turn),
        )
        for turn, answer in enumerate(response.turns)
    ]


def _temperature(entrant: Entrant, prompt: EvaluationPrompt) -> float | None:
    by_category: dict[str, float] = entrant.decoding.get("temperatures") or {}
    return by_category.get(prompt.category or "", entrant.decoding.get("temperature"))


def _rewards(session: Session, evaluation: Evaluation, response: Response) -> list[AnswerReward]:
    rows = session.execute(
        select(RewardAssessment.name, RewardValue.value)
        .join(RewardValue, RewardValue.assessment_id == RewardAssessment.id)
        .where(
            RewardAssessment.evaluation_id == evaluation.id,
            RewardValue.entrant_id == response.entrant_id,
            RewardValue.position == response.position,
            RewardValue.sample == response.sample,
        )
        .order_by(RewardAssessment.id)
    )
    return [AnswerReward(source=name, value=value) for name, value in rows]


def _verdicts(
    session: Session, evaluation: Evaluation, entrant: Entrant, position: int
) -> tuple[list[AnswerVerdict], bool]:
    """Verdicts that count now, by judge; whether there are more. Judges see the first sample of every entrant."""
    rows = session.execute(
        select(Verdict, Judge)
        .join(Judge, Judge.id == Verdict.judge_id)
        .where(
            Judge.evaluation_id == evaluation.id,
            Verdict.position == position,
            ~Verdict.superseded,
            or_(Verdict.a == entrant.id, Verdict.b == entrant.id),
        )
        .order_by(Judge.id, Verdict.turn, Verdict.id)
        .limit(_MOST_VERDICTS + 1)
    ).all()
    names = {listed.id: listed.name for listed in entrants_of(session, evaluation)}
    made = [_verdict(session, evaluation, verdict, judge, names) for verdict, judge in rows[:_MOST_VERDICTS]]
    return made, len(rows) > _MOST_VERDICTS


def _verdict(
    session: Session, evaluation: Evaluation, verdict: Verdict, judge: Judge, names: dict[uuid.UUID, str]
) -> AnswerVerdict:
    answer = session.get(JudgeAnswer, (evaluation.project_id, verdict.answer_key)) if verdict.answer_key else None
    payer = session.get(Judge, answer.judge_id) if answer is not None and answer.judge_id else None
    return AnswerVerdict(
        verdict=ItemVerdict(
            **verdict_out(verdict, names).model_dump(),
            judge=judge.name,
            judge_id=judge.id,
            style=judge.style,
            called=verdict.answer_key is not None,
        ),
        prompt_tokens=answer.prompt_tokens if answer else None,
        completion_tokens=answer.completion_tokens if answer else None,
        cost=cost_of(answer, payer),
        seconds=answer.seconds if answer else None,
        cached=was_there(session, judge, verdict, answer) if answer else None,
    )
