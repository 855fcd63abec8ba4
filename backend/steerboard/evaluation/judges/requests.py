"""One question to a judge: the request, its identity, and how an answer becomes verdicts. Pure."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import orjson

from steerboard.evaluation.judges.verdict_parser import Preference, is_refusal
from steerboard.registry.endpoints.chat import ChatRequest, Completion
from steerboard.registry.endpoints.openai_format import request_body
from steerboard_contracts.judge_prompts.own_prompts import Prompt


@dataclass(frozen=True)
class Place:
    """The item of one verdict row, see `Verdict`."""

    a: uuid.UUID
    b: uuid.UUID | None
    a_first: bool | None


@dataclass(frozen=True)
class JudgeVerdict:
    """One verdict. `value` is None unless `status` is ok."""

    place: Place
    status: str
    value: float | None = None
    weight: int = 1
    detail: str | None = None


# The verdict of an answer on each place of its question, in order; None: no verdict.
Reading = Callable[[Completion], Sequence[Preference | float | None]]


@dataclass(frozen=True)
class Question:
    """`request` goes to the endpoint; `read` parses its answer. `repeat`: it was sent before, word for word."""

    position: int
    turn: int
    places: tuple[Place, ...]
    request: ChatRequest
    read: Reading = field(repr=False)
    repeat: bool = False


def request_of(
    model: str, prompt: Prompt, *, temperature: float, max_tokens: int, top_logprobs: int | None = None
) -> ChatRequest:
    system, user = prompt
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return ChatRequest(model, messages, temperature, max_tokens, top_logprobs=top_logprobs)


def key_of(base_url: str, request: ChatRequest, *, repeat: bool = False) -> str:
    """SHA-256 of who is called and with what; the same request sent again has a key of its own."""
    document = {"base_url": base_url, "body": request_body(request)} | ({"repeat": 1} if repeat else {})
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def outcomes(question: Question, answer: Completion) -> list[JudgeVerdict]:
    """The verdicts of an answer: exactly one per place."""
    verdicts = []
    for place, verdict in zip(question.places, question.read(answer), strict=True):
        if isinstance(verdict, Preference):
            verdicts.append(JudgeVerdict(place, "ok", verdict.value, verdict.weight))
        elif verdict is not None:
            verdicts.append(JudgeVerdict(place, "ok", verdict))
        elif is_refusal(answer.content, answer.finish_reason):
            verdicts.append(JudgeVerdict(place, "refused", detail="the judge declined"))
        else:
            verdicts.append(JudgeVerdict(place, "unparsed", detail=_why_unparsed(answer)))
    return verdicts


def failures(question: Question, code: str, detail: str) -> list[JudgeVerdict]:
    """The verdicts of a question that got no answer."""
    return [JudgeVerdict(place, "error", detail=f"{code}: {detail}") for place in question.places]


def _why_unparsed(answer: Completion) -> str:
    if answer.finish_reason == "length":
        return "no verdict before the token limit"
    return "no verdict in the answer" if answer.content.strip() else "an empty answer"
