"""The call behind a verdict: what was sent, what came back, and what it cost.

Requests are not stored. What was sent is put together again from the prompt, the answers and the judge's settings, and
shown only where its hash is the one that the answer is kept under: then it is that request, to the last character.
"""

from __future__ import annotations

import uuid

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.items.schemas import CallMessage, JudgeCall, RepeatedCall
from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, RepeatedVerdict, Verdict
from steerboard.evaluation.judges import styles
from steerboard.evaluation.judges.queries import judge_inputs_of
from steerboard.evaluation.judges.requests import Place, key_of
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.spending.budget import Prices
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import NotFound
from steerboard.registry.endpoints.chat import ChatRequest
from steerboard.registry.tables import Endpoint


def call_of(session: Session, evaluation: Evaluation, judge: Judge, verdict_id: int) -> JudgeCall:
    """Raises `NotFound`: `unknown_verdict`, and `no_call` where no endpoint was asked."""
    verdict = session.get(Verdict, verdict_id)
    if verdict is None or verdict.judge_id != judge.id:
        raise NotFound(f"{judge.name} has no verdict {verdict_id}", code="unknown_verdict")
    if judge.imported is not None or judge.model_id is not None:
        raise NotFound(
            f"{judge.name} called no endpoint",
            code="no_call",
            hint="Its verdicts were imported, or computed by a preference model.",
        )
    endpoint = session.get(Endpoint, judge.endpoint_id) if judge.endpoint_id else None
    answer = session.get(JudgeAnswer, (evaluation.project_id, verdict.answer_key)) if verdict.answer_key else None
    payer = session.get(Judge, answer.judge_id) if answer is not None and answer.judge_id else None
    request, reason = _request(session, evaluation, judge, verdict, endpoint)
    return JudgeCall(
        judge=judge.name,
        model=judge.model,
        style=judge.style,
        endpoint=endpoint.name if endpoint else None,
        position=verdict.position,
        turn=verdict.turn,
        status=verdict.status,
        value=verdict.value,
        detail=verdict.detail,
        messages=[CallMessage.model_validate(message) for message in request.messages] if request else None,
        no_messages=reason,
        temperature=request.temperature if request else None,
        max_tokens=request.max_tokens if request else None,
        answer=answer.content if answer else verdict.raw,
        finish_reason=answer.finish_reason if answer else None,
        logprobs=answer.logprobs if answer else None,
        prompt_tokens=answer.prompt_tokens if answer else None,
        completion_tokens=answer.completion_tokens if answer else None,
        cost=cost_of(answer, payer),
        seconds=answer.seconds if answer else None,
        attempts=answer.attempts if answer else None,
        cached=answer is not None and was_there(session, judge, verdict, answer),
        paid_by=payer.name if payer else None,
        answered_at=answer.created_at if answer else None,
        repeated=_repeated(session, evaluation.project_id, verdict),
    )


def _request(
    session: Session, evaluation: Evaluation, judge: Judge, verdict: Verdict, endpoint: Endpoint | None
) -> tuple[ChatRequest | None, str | None]:
    """The request, or why it cannot be shown."""
    if endpoint is None:
        return None, "The judge's endpoint was deleted, so the request cannot be checked against its hash."
    settings = JudgeSettings.model_validate(judge.settings)
    inputs = judge_inputs_of(session, evaluation, settings, position=verdict.position)
    place = Place(verdict.a, verdict.b, verdict.a_first)
    questions = styles.questions(judge.style, settings, judge.model, inputs)
    question = next((item for item in questions if item.turn == verdict.turn and place in item.places), None)
    if question is None:
        return None, "An entrant or an answer that the request was made of is gone."
    if verdict.answer_key is None:
        return question.request, None
    if key_of(endpoint.base_url, question.request) != verdict.answer_key:
        return None, "Answers, entrants, the endpoint or the prompt's wording changed after the request was sent."
    return question.request, None


def cost_of(answer: JudgeAnswer | None, payer: Judge | None) -> float | None:
    prices = Prices.of(JudgeSettings.model_validate(payer.settings)) if payer is not None else None
    if answer is None or prices is None or answer.prompt_tokens is None or answer.completion_tokens is None:
        return None
    return prices.cost(answer.prompt_tokens, answer.completion_tokens)


def was_there(session: Session, judge: Judge, verdict: Verdict, answer: JudgeAnswer) -> bool:
    """Another judge had paid, or this one for an earlier verdict at the prompt: equal answers make equal requests."""
    if answer.judge_id != judge.id:
        return True
    earlier = select(Verdict.id).where(
        Verdict.judge_id == judge.id,
        Verdict.position == verdict.position,
        Verdict.answer_key == verdict.answer_key,
        Verdict.id < verdict.id,
        ~Verdict.superseded,
    )
    if judge.style == "multi":  # all verdicts of a turn are of one call
        earlier = earlier.where(Verdict.turn != verdict.turn)
    return session.scalar(earlier.limit(1)) is not None


def _repeated(session: Session, project_id: uuid.UUID, verdict: Verdict) -> RepeatedCall | None:
    again = session.scalar(
        select(RepeatedVerdict)
        .where(
            RepeatedVerdict.judge_id == verdict.judge_id,
            RepeatedVerdict.position == verdict.position,
            RepeatedVerdict.turn == verdict.turn,
            RepeatedVerdict.a == verdict.a,
            RepeatedVerdict.b.is_not_distinct_from(verdict.b),
            RepeatedVerdict.a_first.is_not_distinct_from(verdict.a_first),
        )
        .order_by(RepeatedVerdict.id.desc())
        .limit(1)
    )
    if again is None:
        return None
    answer = session.get(JudgeAnswer, (project_id, again.answer_key)) if again.answer_key else None
    return RepeatedCall(status=again.status, value=again.value, answer=answer.content if answer else None)
