"""The live stream of one comparison: server-sent events, from the beginning for every new reader.

Like the project's events it reads Postgres, is woken by Redis or polls, and holds no connection while it waits.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from fastapi import FastAPI
from fastapi.sse import format_sse_event
from pydantic import BaseModel

from steerboard.accounts.http import event_stream
from steerboard.platform.concurrency import in_slot
from steerboard.platform.events.wakeups import listening
from steerboard.playground import service
from steerboard.playground.claims import channel_of
from steerboard.playground.schemas import AnswerChange, AnswerOut
from steerboard.playground.tables import Comparison

END = format_sse_event(event="end", data_str="{}")


@dataclass
class ReaderState:
    """What a reader knows of the answers, by place."""

    answers: dict[int, AnswerOut] = field(default_factory=dict)

    def news(self, answer: AnswerOut) -> AnswerChange | None:
        """What has changed since; None when nothing has. An answer that was started over begins at offset 0 again."""
        known = self.answers.get(answer.place)
        if known == answer:
            return None
        self.answers[answer.place] = answer
        before = known.text if known is not None and answer.text.startswith(known.text) else ""
        fields = answer.model_dump(exclude={"text"})
        return AnswerChange(**fields, at=_utf16_units(before), text=answer.text[len(before) :])


def _utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


async def follow(
    app: FastAPI,
    comparison_id: uuid.UUID,
    may_read: Callable[[], bool],
    shown: Callable[[AnswerChange], BaseModel] = lambda change: change,
) -> AsyncIterator[bytes]:
    """`answer` events until all answers have ended, then `end`. Ends without it after `stream.LIFE_SECONDS`, or soon
    after the right to read does. `shown`: what of a change its reader may see."""
    state = ReaderState()
    ends = time.monotonic() + event_stream.LIFE_SECONDS
    last_sent = checked = time.monotonic()
    yield event_stream.START
    async with listening(app.state.settings.redis_url, channel_of(comparison_id)) as wakeups:
        while time.monotonic() < ends and not app.state.stopping.is_set():
            if time.monotonic() - checked >= event_stream.CHECK_SECONDS:
                if not await in_slot(app, may_read):
                    return
                checked = time.monotonic()
            wakeups.news.clear()
            answers, ended = await in_slot(app, _read, app, comparison_id)
            for change in filter(None, map(state.news, answers)):
                last_sent = time.monotonic()
                yield format_sse_event(event="answer", data_str=shown(change).model_dump_json())
            if ended:
                yield END
                return
            if time.monotonic() - last_sent >= event_stream.HEARTBEAT_SECONDS:
                last_sent = time.monotonic()
                yield event_stream.HEARTBEAT
            await wakeups.pause(app)


def _read(app: FastAPI, comparison_id: uuid.UUID) -> tuple[list[AnswerOut], bool]:
    with app.state.sessions() as session:
        comparison = session.get_one(Comparison, comparison_id)
        lease_seconds = app.state.settings.lease_seconds
        return service.comparisons_out(session, [comparison], lease_seconds)[0].columns, comparison.ended_at is not None
