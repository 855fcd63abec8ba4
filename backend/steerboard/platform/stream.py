"""The live stream of a project's events: server-sent events, replayable by `Last-Event-ID`.

Postgres is read, Redis only says when to look; with Redis away the stream polls. A connection of the database is
held for each read alone, never while the reader is slow or nothing happens.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

import orjson
import redis.asyncio
from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request
from fastapi.responses import StreamingResponse
from redis.exceptions import RedisError
from starlette.concurrency import run_in_threadpool

from steerboard.platform import events
from steerboard.platform.access import Access, AccessTo, Db
from steerboard.platform.errors import InvalidRequest, problems
from steerboard.platform.redis_url import client_url

router = APIRouter(tags=["events"])

BATCH = 200
HEARTBEAT_SECONDS = 15.0
# A reader reconnects with its last id, and its rights are checked again.
LIFE_SECONDS = 600.0
POLL_SECONDS = 3.0
POLL_SECONDS_WITHOUT_REDIS = 0.5
_TICK_SECONDS = 0.25


@router.get("/events", response_class=StreamingResponse, responses=problems(404))
def stream_events(
    request: Request,
    session: Db,
    access: Annotated[Access, Depends(AccessTo("read"))],
    after: Annotated[int | None, Query(ge=0, description="Replay what came after this id; 0 for all.")] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events: `id`, `event` (the type) and `data` ({id, type, created_at, payload}). Without a place to
    start from, only what happens from now on. The stream ends after ten minutes; reconnect with `Last-Event-ID`."""
    start = after
    if last_event_id is not None:
        if not last_event_id.isdigit():
            raise InvalidRequest(f"Last-Event-ID is a number, not {last_event_id!r}", code="bad_event_id")
        start = int(last_event_id)
    if start is None:
        start = events.last_id(session, access.project.id)
    body = _follow(request.app, access.project.id, start)
    return StreamingResponse(body, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _follow(app: FastAPI, project_id: uuid.UUID, last: int) -> AsyncIterator[bytes]:
    wake = asyncio.Event()
    listener = asyncio.create_task(_listen(app.state.settings.redis_url, project_id, wake))
    ends = time.monotonic() + LIFE_SECONDS
    said = time.monotonic()
    yield b"retry: 1000\n\n"
    try:
        while time.monotonic() < ends and not app.state.stopping.is_set():
            wake.clear()
            batch = await run_in_threadpool(_read, app, project_id, last)
            for event in batch:
                last = event["id"]
                yield _line(event)
            if batch:
                said = time.monotonic()
            elif time.monotonic() - said >= HEARTBEAT_SECONDS:
                said = time.monotonic()
                yield b": still here\n\n"
            if len(batch) < BATCH:
                await _pause(app, wake, listener)
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener


def _read(app: FastAPI, project_id: uuid.UUID, last: int) -> list[dict[str, Any]]:
    with app.state.sessions() as session:
        return [
            {"id": event.id, "type": event.type, "created_at": event.created_at, "payload": event.payload}
            for event in events.read_after(session, project_id, last, BATCH)
        ]


def _line(event: dict[str, Any]) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event["id"], event["type"].encode(), orjson.dumps(event))


async def _pause(app: FastAPI, wake: asyncio.Event, listener: asyncio.Task[None]) -> None:
    """Until there may be news. In small steps, so that the server's end is not held up."""
    began = time.monotonic()
    while not wake.is_set() and not app.state.stopping.is_set():
        longest = POLL_SECONDS_WITHOUT_REDIS if listener.done() else POLL_SECONDS
        if time.monotonic() - began >= longest:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(wake.wait(), _TICK_SECONDS)


async def _listen(redis_url: str, project_id: uuid.UUID, wake: asyncio.Event) -> None:
    """Set `wake` at each message. Ends when Redis is away; then the stream polls for the rest of its life."""
    try:
        client = redis.asyncio.Redis.from_url(client_url(redis_url), socket_connect_timeout=1.0)
    except ValueError:
        return
    try:
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(events.channel(project_id))
            wake.set()  # what was committed before the subscription took hold
            async for message in subscription.listen():
                if message["type"] == "message":
                    wake.set()
    except (RedisError, OSError):
        wake.set()
