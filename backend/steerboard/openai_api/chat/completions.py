"""Waiting for answers, whole or piece by piece, without holding a connection of the database."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request

from steerboard.openai_api.chat import answers
from steerboard.openai_api.chat.answers import Answer, AnswerLate
from steerboard.openai_api.errors import error_body
from steerboard.platform.concurrency import departure_of, in_slot
from steerboard.platform.database import transaction
from steerboard.platform.events.wakeups import listening
from steerboard.platform.http.errors import ClientGone, ServiceUnavailable
from steerboard.playground.claims import channel_of
from steerboard_contracts.errors import SteerboardError

# As long as OpenAI's clients wait by default.
LIMIT_SECONDS = 600.0
_HEARTBEAT_SECONDS = 15.0
# Answers are deleted after their request has ended.
_forgetting: set[asyncio.Future[None]] = set()


class AnswerFailed(SteerboardError):
    """The model or endpoint could not answer; the code is that of the reason."""

    code = "completion_failed"
    status = 502
    title = "The answer failed"


@dataclass
class Chat:
    """One completion under way. `model` as it was asked for."""

    app: FastAPI
    ids: Sequence[uuid.UUID]
    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    async def whole(self, request: Request) -> dict[str, Any]:
        """Raises `AnswerFailed`, `AnswerLate`, `ClientGone`, `ServiceUnavailable`."""
        waiting = asyncio.ensure_future(self._last())
        leaving = asyncio.ensure_future(departure_of(request))
        try:
            await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise ClientGone("the client closed the connection before the answer was complete")
            choices = waiting.result()
        finally:
            waiting.cancel()
            leaving.cancel()
            self._forget()
        return {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [
                {
                    "index": place,
                    "message": {"role": "assistant", "content": answer.text, "refusal": None},
                    "logprobs": None,
                    "finish_reason": answer.finish_reason,
                }
                for place, answer in enumerate(choices)
            ],
            **usage_of(choices),
        }

    async def pieces(self, *, include_usage: bool) -> AsyncIterator[bytes]:
        """Server-sent events. A failure is the last of them. Ends, too, when its reader has left."""
        shown = ["" for _ in self.ids]
        ended: set[int] = set()
        extra: dict[str, Any] = {"usage": None} if include_usage else {}
        try:
            for place in range(len(self.ids)):
                yield self._chunk(place, {"role": "assistant", "content": ""}, None, extra)
            async for choices in self._states():
                if choices is None:
                    yield b": still here\n\n"
                    continue
                for place, answer in enumerate(choices):
                    if place in ended:
                        continue
                    if answer.text != shown[place] and answer.text.startswith(shown[place]):
                        new, shown[place] = answer.text[len(shown[place]) :], answer.text
                        yield self._chunk(place, {"content": new}, None, extra)
                    if answer.ended:
                        _check(answer)
                        ended.add(place)
                        if answer.text != shown[place]:
                            raise AnswerFailed("the answer was started over and came out differently; ask again")
                        yield self._chunk(place, {}, answer.finish_reason, extra)
                if include_usage and len(ended) == len(self.ids):
                    yield self._event({**self._head, "choices": [], **usage_of(choices)})
            yield b"data: [DONE]\n\n"
        except SteerboardError as error:
            yield self._event(error_body(error))
        finally:
            self._forget()

    async def _last(self) -> list[Answer]:
        last: list[Answer] = []
        async for choices in self._states():
            if choices is not None:
                last = choices
        for answer in last:
            _check(answer)
        return last

    async def _states(self) -> AsyncIterator[list[Answer] | None]:
        """The answers whenever they may have changed, until all have ended; None where nothing has changed for long."""
        ends = time.monotonic() + LIMIT_SECONDS
        shown = time.monotonic()
        known: list[Answer] | None = None
        url = self.app.state.settings.redis_url
        async with listening(url, *map(channel_of, self.ids)) as wakeups:
            while not self.app.state.stopping.is_set():
                wakeups.news.clear()
                now = await in_slot(self.app, _read, self.app, self.ids)
                if now != known:
                    known, shown = now, time.monotonic()
                    yield now
                if all(answer.ended for answer in now):
                    return
                if time.monotonic() >= ends:
                    raise AnswerLate(
                        f"the answer was not complete within {LIMIT_SECONDS:g} seconds",
                        hint="Ask for fewer tokens (`max_tokens`), or give the interactive worker a faster device.",
                    )
                if time.monotonic() - shown >= _HEARTBEAT_SECONDS:
                    shown = time.monotonic()
                    yield None
                await wakeups.pause(self.app)
        raise ServiceUnavailable("The server is being stopped.", hint="Ask again in a moment.")

    def _forget(self) -> None:
        work = asyncio.ensure_future(in_slot(self.app, _forget, self.app, self.ids))
        _forgetting.add(work)
        work.add_done_callback(_forgetting.discard)

    @property
    def _head(self) -> dict[str, Any]:
        return {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model}

    def _chunk(self, place: int, delta: dict[str, Any], reason: str | None, extra: dict[str, Any]) -> bytes:
        choice = {"index": place, "delta": delta, "logprobs": None, "finish_reason": reason}
        return self._event({**self._head, "choices": [choice], **extra})

    @staticmethod
    def _event(content: dict[str, Any]) -> bytes:
        return f"data: {json.dumps(content)}\n\n".encode()


def usage_of(choices: Sequence[Answer]) -> dict[str, Any]:
    """The usage, null where an endpoint has not counted the tokens of the prompt."""
    prompt = choices[0].prompt_tokens
    if prompt is None or any(answer.prompt_tokens is None for answer in choices):
        return {"usage": None}
    written = sum(answer.tokens for answer in choices)
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}}


def _check(answer: Answer) -> None:
    """Raises `AnswerFailed`."""
    if answer.state == "succeeded":
        return
    problem = answer.error or {"detail": "the answer was cancelled", "code": AnswerFailed.code, "hint": None}
    failed = AnswerFailed(problem["detail"], code=str(problem["code"]), hint=problem.get("hint"))
    if 400 <= problem.get("status", failed.status) < 500:
        failed.status = 400  # what was asked for cannot be answered, and its client need not try again
    raise failed


def _read(app: FastAPI, ids: Sequence[uuid.UUID]) -> list[Answer]:
    with app.state.sessions() as session:
        return answers.read(session, ids)


def _forget(app: FastAPI, ids: Sequence[uuid.UUID]) -> None:
    with transaction(app.state.sessions) as session:
        answers.forget(session, ids)
