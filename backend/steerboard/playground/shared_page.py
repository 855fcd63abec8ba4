"""The answers of a comparison as a frozen page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from steerboard.playground.errors import StillOpen
from steerboard.playground.schemas import AnswerOut, ComparisonOut
from steerboard.sharing.frozen import FrozenPage, Passage


def page_of_answers(comparison: ComparisonOut) -> FrozenPage:
    """The prompt, and each answer with what it was asked with and its reward. Raises `StillOpen`."""
    if comparison.ended_at is None:
        raise StillOpen(
            "some answers of this comparison are not complete", hint="Wait until they have ended, or cancel them."
        )
    question = comparison.prompt[-1].content
    rated = f"; rewards by {comparison.reward_model.name}" if comparison.reward_model else ""
    now = f"{dt.datetime.now(dt.UTC):%d %B %Y, %H:%M}"
    return FrozenPage(
        title=f"Answers to: {' '.join(question.split())[:100]}",
        about=f"{len(comparison.columns)} answers, seed {comparison.seed}{rated}; as of {now} (UTC)",
        blocks=(
            *(Passage(message.role, message.content) for message in comparison.prompt),
            *(Passage(_title(answer), _text(answer), ", ".join(_facts(answer))) for answer in comparison.columns),
        ),
    )


def _title(answer: AnswerOut) -> str:
    return answer.name if answer.score_text is None else f"{answer.name} at {answer.score_text}"


def _text(answer: AnswerOut) -> str:
    if answer.error is not None:
        return f"{answer.text}\n[{answer.error.title}]".strip()
    return f"{answer.text}\n[cancelled]".strip() if answer.state == "cancelled" else answer.text


def _facts(answer: AnswerOut) -> Iterator[str]:
    decoding = answer.decoding
    yield "greedy" if decoding.temperature == 0 else f"temperature {decoding.temperature:g}"
    if decoding.temperature and decoding.top_p < 1:
        yield f"top p {decoding.top_p:g}"
    if decoding.temperature and decoding.top_k:
        yield f"top k {decoding.top_k}"
    if decoding.guidance != 1:
        yield f"guidance {decoding.guidance:g}"
    if answer.reward is not None:
        yield f"reward {answer.reward:.2f}"
    if answer.reward_z is not None:
        yield f"{answer.reward_z:+.2f} z"
    yield f"{answer.tokens} tokens"
    if answer.state == "succeeded" and not answer.finished:
        yield "cut at its limit"
