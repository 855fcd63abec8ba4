"""The API's schemas of an answer's trace."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from steerboard.evaluation.items.schemas import CallMessage, ItemVerdict


class AnswerTurn(BaseModel):
    """One turn of an answer. `messages`: what its prompt was made of; `prompt`: the text that the model was given, with
    special tokens. `finished`: the model ended the turn, the token limit did not. `seconds`: from request to answer, of
    endpoints. Null: it was not recorded."""

    messages: list[CallMessage]
    prompt: str | None
    answer: str
    prompt_tokens: int | None
    tokens: int | None
    finished: bool | None
    seconds: float | None


class AnswerReward(BaseModel):
    """The raw reward that a reward model gave."""

    source: str
    value: float


class AnswerVerdict(BaseModel):
    """A verdict on the answer, and what its call took: tokens and seconds of the endpoint's answer, `cost` by the
    prices of the judge that paid, and whether it was `cached`. Null without a call, and where it was not recorded."""

    verdict: ItemVerdict
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    seconds: float | None
    cached: bool | None


class AnswerTrace(BaseModel):
    """How an answer came about, and how it was judged. `decoding`: as the entrant was asked, with the `temperature` of
    the prompt's category; empty for imported answers, which have neither `seed` nor `engine`. `seed`: of the
    evaluation, from which every answer's own follows. `more_verdicts`: there are more than fit here."""

    entrant: str
    source: Literal["model", "endpoint", "import"]
    model: str | None
    endpoint: str | None
    position: int
    sample: int
    engine: str | None
    decoding: dict[str, Any]
    temperature: float | None
    seed: int | None
    turns: list[AnswerTurn]
    rewards: list[AnswerReward]
    verdicts: list[AnswerVerdict]
    more_verdicts: bool
