"""The live stream of a project's events: server-sent events, replayable by `Last-Event-ID`.

Postgres is read, Redis only signals when to look; without Redis the stream polls. What is new is read once for all
readers of a project (`accounts.http.event_feed`); a connection of the database is held for each read alone, never while
a reader is slow or nothing happens.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Header, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials
from fastapi.sse import format_sse_event

from steerboard.accounts.access import Access, AccessTo, Credentials, Db, identify, require, visible_project
from steerboard.accounts.http.event_feed import following
from steerboard.accounts.http.routes import Router
from steerboard.accounts.roles import Scope
from steerboard.platform.concurrency import in_slot
from steerboard.platform.database import transaction
from steerboard.platform.events import log as events
from steerboard.platform.http.errors import Forbidden, InvalidRequest, NotFound, Unauthenticated, problems

router = Router(tags=["events"])

HEARTBEAT_SECONDS = 15.0
# A reader reconnects with its last id.
LIFE_SECONDS = 600.0
START, HEARTBEAT = format_sse_event(retry=1000), format_sse_event(comment="still here")
# Who was removed, signed out or lost a token hears nothing after this.
CHECK_SECONDS = 20.0


@router.get("/events", response_class=StreamingResponse, responses=problems(404))
def stream_events(
    request: Request,
    session: Db,
    access: Annotated[Access, Depends(AccessTo("read"))],
    credentials: Credentials,
    after: Annotated[int | None, Query(ge=0, description="Replay what came after this id; 0 for all.")] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events: `id`, `event` (the type) and `data` ({id, type, created_at, payload}). Without a starting
    point, only new events are sent. The stream ends after ten minutes, or soon after the right to read ends;
    reconnect with `Last-Event-ID`."""
    start = after
    if last_event_id is not None:
        # Only what is a number to everyone, and to the database.
        if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 19):
            raise InvalidRequest(f"Last-Event-ID must be a number, not {last_event_id!r}", code="bad_event_id")
        start = int(last_event_id)
    if start is None:
        start = events.last_id(session, access.project.id)
    project_id = access.project.id
    body = _follow(request.app, project_id, start, lambda: may_read(request, credentials, project_id))
    return StreamingResponse(body, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def may_read(
    request: Request,
    credentials: HTTPAuthorizationCredentials | None,
    project_id: uuid.UUID,
    scope: Scope = "read",
) -> bool:
    """Whether a new request of this reader would be answered."""
    try:
        with transaction(request.app.state.sessions) as session:
            caller = identify(request, session, credentials)
            require(visible_project(session, caller, str(project_id))[1], scope)
    except (Unauthenticated, Forbidden, NotFound):
        return False
    return True


async def _follow(app: FastAPI, project_id: uuid.UUID, last: int, may_read: Callable[[], bool]) -> AsyncIterator[bytes]:
    ends = time.monotonic() + LIFE_SECONDS
    last_sent = time.monotonic()
    check_at = last_sent + CHECK_SECONDS * random.uniform(0.5, 1.0)
    yield START
    async with following(app, project_id) as feed:
        while time.monotonic() < ends and not feed.ended:
            if time.monotonic() >= check_at:
                # One after the other: a crowd of readers that came together must not crowd out the requests.
                async with app.state.checks:
                    if not await in_slot(app, may_read):
                        return
                check_at = time.monotonic() + CHECK_SECONDS
            batch = await feed.after(last)
            for number, line in batch:
                last = number
                yield line
            if batch:
                last_sent = time.monotonic()
            elif time.monotonic() - last_sent >= HEARTBEAT_SECONDS:
                last_sent = time.monotonic()
                yield HEARTBEAT
            else:
                await feed.wait(last, max(0.1, min(CHECK_SECONDS, HEARTBEAT_SECONDS) / 2))
