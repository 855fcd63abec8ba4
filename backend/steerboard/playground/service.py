"""Comparisons: asking for them, reading them, cancelling them."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from typing import cast

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.events.log import wake
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import find
from steerboard.playground import columns
from steerboard.playground.claims import CHANNEL, channel_of
from steerboard.playground.errors import AlreadyEnded
from steerboard.playground.queue_position import Waiting
from steerboard.playground.schemas import (
    AnswerOut,
    AnswerProblem,
    AnswerState,
    ComparisonIn,
    ComparisonOut,
    Named,
    PlaygroundDecoding,
    Prompt,
)
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard_contracts.turns import Message


def create_comparison(
    session: Session,
    project: Project,
    request: ComparisonIn,
    actor: str,
    *,
    blind: bool = False,
    prompts: Sequence[Prompt] | None = None,
) -> Comparison:
    """Queue one answer for each column; equal answers that have succeeded before are copied immediately, but not into
    or out of a `blind` comparison: a copy would tell who answers. `prompts`: a conversation for each column, instead of
    the one of all.

    Raises `NotFound`, `WrongRole`, `NoScores`.
    """
    reward = columns.reward_model(session, project, request.reward) if request.reward else None
    comparison = Comparison(
        project_id=project.id,
        prompt=_plain(request.prompt),
        blind=blind,
        seed=request.seed,
        reward_model_id=reward.id if reward else None,
        reward_model_name=reward.name if reward else None,
        created_by=actor,
        attempt=0,
    )
    answers = []
    for place, column in enumerate(request.columns):
        resolved = columns.resolve(session, project, column, place)
        decoding = column.decoding.model_dump()
        own_prompt = _plain(prompts[place]) if prompts is not None else None
        answers.append(
            PlaygroundAnswer(
                place=place,
                model_id=resolved.model_id,
                endpoint_id=resolved.endpoint_id,
                name=resolved.name,
                prompt=own_prompt,
                score=resolved.score,
                score_text=resolved.score_text,
                decoding=decoding,
                seed=request.seed,
                reuse_key=columns.reuse_key(
                    project.id,
                    resolved.source,
                    resolved.score_text,
                    decoding,
                    request.seed,
                    own_prompt or comparison.prompt,
                    comparison.reward_model_id,
                ),
                state="queued",
                text="",
                tokens=0,
                finished=False,
                reused=False,
            )
        )
    session.add(comparison)
    session.flush()
    for answer in answers:
        answer.comparison_id = comparison.id
        if not blind:
            _copy_equal(session, answer)
    session.add_all(answers)
    if all(answer.state == "succeeded" for answer in answers):
        comparison.ended_at = func.clock_timestamp()
    else:
        wake(session, CHANNEL)
    session.flush()
    session.refresh(comparison)
    return comparison


def _plain(prompt: Prompt) -> list[dict[str, str]]:
    return [message.model_dump() for message in prompt]


def _copy_equal(session: Session, answer: PlaygroundAnswer) -> None:
    equal = session.scalar(
        select(PlaygroundAnswer)
        .join(Comparison, Comparison.id == PlaygroundAnswer.comparison_id)
        .where(PlaygroundAnswer.reuse_key == answer.reuse_key, PlaygroundAnswer.state == "succeeded", ~Comparison.blind)
        .order_by(PlaygroundAnswer.comparison_id.desc())
        .limit(1)
    )
    if equal is None:
        return
    copied = ("state", "text", "tokens", "prompt_tokens", "finished", "reward", "reward_z")
    for name in (*copied, "first_token_seconds", "seconds"):
        setattr(answer, name, getattr(equal, name))
    answer.started_at, answer.ended_at = equal.started_at, equal.ended_at
    answer.reused = True


def get_comparison(session: Session, project: Project, ref: str) -> Comparison:
    """The comparison by id. Raises `NotFound`, also for another project's and for a blind one."""
    query = select(Comparison).where(Comparison.project_id == project.id, ~Comparison.blind)
    comparison = find(session, query, Comparison.id, None, ref)
    if comparison is None:
        raise NotFound(f"there is no comparison {ref!r}", hint="List them at playground/comparisons.")
    return comparison


def comparisons_out(session: Session, comparisons: Sequence[Comparison], lease_seconds: float) -> list[ComparisonOut]:
    """The comparisons with their answers, in two queries however many there are."""
    ids = [comparison.id for comparison in comparisons]
    answers: dict[uuid.UUID, list[PlaygroundAnswer]] = defaultdict(list)
    rows = select(PlaygroundAnswer).where(PlaygroundAnswer.comparison_id.in_(ids)).order_by(PlaygroundAnswer.place)
    for answer in session.scalars(rows):
        answers[answer.comparison_id].append(answer)
    waiting = Waiting(session, lease_seconds, comparisons)
    return [_out(comparison, answers[comparison.id], waiting) for comparison in comparisons]


def _out(comparison: Comparison, answers: Sequence[PlaygroundAnswer], waiting: Waiting) -> ComparisonOut:
    return ComparisonOut(
        id=comparison.id,
        prompt=[Message.model_construct(**message) for message in comparison.prompt],  # type: ignore[arg-type]
        seed=comparison.seed,
        reward_model=_named(comparison.reward_model_id, comparison.reward_model_name or ""),
        created_by=comparison.created_by,
        created_at=comparison.created_at,
        ended_at=comparison.ended_at,
        columns=[_answer_out(comparison, answer, waiting) for answer in answers],
    )


def _answer_out(comparison: Comparison, answer: PlaygroundAnswer, waiting: Waiting) -> AnswerOut:
    is_open = answer.ended_at is None
    return AnswerOut(
        place=answer.place,
        model=_named(answer.model_id, answer.name),
        endpoint=_named(answer.endpoint_id, answer.name),
        name=answer.name,
        score=answer.score,
        score_text=answer.score_text,
        decoding=PlaygroundDecoding.model_validate(answer.decoding),
        state=cast(AnswerState, answer.state),
        waits_for=waiting.of(comparison, answer.waits_for) if is_open else None,
        text=answer.text,
        tokens=answer.tokens,
        finished=answer.finished,
        reward=answer.reward,
        reward_z=answer.reward_z,
        first_token_seconds=answer.first_token_seconds,
        seconds=answer.seconds,
        reused=answer.reused,
        error=AnswerProblem.model_validate(answer.error) if answer.error else None,
    )


def _named(id_: uuid.UUID | None, name: str) -> Named | None:
    return Named(id=id_, name=name) if id_ else None


def cancel(session: Session, comparison: Comparison) -> None:
    """End what is open, keeping the text so far; its worker notices within a moment. Raises `AlreadyEnded`."""
    now: ColumnElement[object] = func.clock_timestamp()
    ended = session.execute(
        update(Comparison)
        .where(Comparison.id == comparison.id, Comparison.ended_at.is_(None))
        .values(ended_at=now, lease_owner=None, lease_expires_at=None)
        .returning(Comparison.id)
    ).first()
    if ended is None:
        raise AlreadyEnded("all answers of this comparison have ended")
    session.execute(
        update(PlaygroundAnswer)
        .where(PlaygroundAnswer.comparison_id == comparison.id, PlaygroundAnswer.ended_at.is_(None))
        .values(state="cancelled", waits_for=None, ended_at=now)
    )
    wake(session, channel_of(comparison.id))
    session.expire_all()
