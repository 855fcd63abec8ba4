"""The newest events of each project, read once for all who follow it, however many they are."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.sse import format_sse_event
from sqlalchemy.exc import SQLAlchemyError

from steerboard.platform.concurrency import in_slot
from steerboard.platform.events import log as events
from steerboard.platform.events.wakeups import Wakeups, listening

log = logging.getLogger(__name__)

BATCH = 200
# Readers further behind read from the database themselves.
KEPT = 5000


class Feed:
    """Follows one project. Lives in the event loop's thread; a reader that is slow costs it nothing."""

    def __init__(self, app: FastAPI, project_id: uuid.UUID) -> None:
        self._app = app
        self._project_id = project_id
        self._recent: deque[tuple[int, bytes]] = deque()
        # Every event after `_floor` up to `_last` is in `_recent`, once it has started.
        self._started = asyncio.Event()
        self._floor = self._last = 0
        self._changed = asyncio.Condition()
        self.ended = False
        self.readers = 0
        self.task = asyncio.create_task(self._follow())

    async def after(self, last: int) -> list[tuple[int, bytes]]:
        """(id, what goes over the wire) of events after `last`, in their order; at most `BATCH` where the database
        is asked. Raises `SQLAlchemyError` when it does not answer."""
        await self._started.wait()
        if last < self._floor:
            return await self._replay(last)
        return [event for event in self._recent if event[0] > last] if last < self._last else []

    async def _replay(self, last: int) -> list[tuple[int, bytes]]:
        # One at a time, and three quarters of the time no one: who is far behind must not hold up everyone else.
        async with self._app.state.replays:
            began = time.monotonic()
            batch = await read(self._app, self._project_id, last)
            await asyncio.sleep(min(1.0, 3 * (time.monotonic() - began)))
        return batch

    async def wait(self, last: int, seconds: float) -> None:
        """Waits until there is an event after `last`, the feed has ended, or so many seconds are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self._last > last or self.ended)

    async def _follow(self) -> None:
        try:
            async with listening(self._app.state.settings.redis_url, events.channel(self._project_id)) as wakeups:
                await self._read_on(wakeups)
        except SQLAlchemyError as error:
            log.warning("the events of a project cannot be read, its readers have to come again: %s", error)

    async def _read_on(self, wakeups: Wakeups) -> None:
        try:
            self._last = await in_slot(self._app, _last_id, self._app, self._project_id)
            self._floor = self._last
            self._started.set()
            while not self._app.state.stopping.is_set():
                wakeups.news.clear()
                batch = await read(self._app, self._project_id, self._last)
                if batch:
                    await self._take(batch)
                if len(batch) < BATCH:
                    await wakeups.pause(self._app)
        finally:
            # Readers are notified first, before the listener ends.
            self.ended = True
            self._started.set()
            async with self._changed:
                self._changed.notify_all()

    async def _take(self, batch: list[tuple[int, bytes]]) -> None:
        self._recent.extend(batch)
        while len(self._recent) > KEPT:
            self._floor = self._recent.popleft()[0]
        self._last = batch[-1][0]
        async with self._changed:
            self._changed.notify_all()


@asynccontextmanager
async def following(app: FastAPI, project_id: uuid.UUID) -> AsyncIterator[Feed]:
    """The project's feed, which ends with its last reader."""
    feeds: dict[uuid.UUID, Feed] = app.state.feeds
    feed = feeds.get(project_id)
    if feed is None or feed.ended:
        feed = feeds[project_id] = Feed(app, project_id)
    feed.readers += 1
    try:
        yield feed
    finally:
        feed.readers -= 1
        if feed.readers == 0:
            if feeds.get(project_id) is feed:
                del feeds[project_id]
            feed.task.cancel()
            with suppress(asyncio.CancelledError):
                await feed.task


async def read(app: FastAPI, project_id: uuid.UUID, last: int) -> list[tuple[int, bytes]]:
    """Reads the events after `last`, `BATCH` at most, as (id, what goes over the wire)."""
    return await in_slot(app, _read, app, project_id, last)


def _read(app: FastAPI, project_id: uuid.UUID, last: int) -> list[tuple[int, bytes]]:
    with app.state.sessions() as session:
        rows = events.read_after(session, project_id, last, BATCH)
        return [(id_, _line(id_, type_, created_at, payload)) for id_, type_, created_at, payload in rows]


def _line(id_: int, type_: str, created_at: dt.datetime, payload: dict[str, Any]) -> bytes:
    event = {"id": id_, "type": type_, "created_at": created_at, "payload": payload}
    return format_sse_event(id=str(id_), event=type_, data_str=orjson.dumps(event).decode())


def _last_id(app: FastAPI, project_id: uuid.UUID) -> int:
    with app.state.sessions() as session:
        return events.last_id(session, project_id)
