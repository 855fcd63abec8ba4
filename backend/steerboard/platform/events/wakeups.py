"""Redis as the wake-up of those who wait for something new in Postgres."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import redis.asyncio
from fastapi import FastAPI
from redis.exceptions import RedisError

from steerboard.platform.events.redis_url import client_url

POLL_SECONDS = 3.0
POLL_SECONDS_WITHOUT_REDIS = 0.5
_TICK_SECONDS = 0.25
_PATIENCE_SECONDS = 1.0


@dataclass(frozen=True)
class Wakeups:
    """What one reader hears of its channels: `news` is set when there may be something to read."""

    news: asyncio.Event
    _listener: asyncio.Task[None]

    async def pause(self, app: FastAPI) -> None:
        """Waits until there may be news, in small steps, so that the server's end is not held up."""
        began = time.monotonic()
        while not self.news.is_set() and not app.state.stopping.is_set():
            longest = POLL_SECONDS_WITHOUT_REDIS if self._listener.done() else POLL_SECONDS
            if time.monotonic() - began >= longest:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), _TICK_SECONDS)


@asynccontextmanager
async def listening(redis_url: str, *channels: str) -> AsyncIterator[Wakeups]:
    """Wake-ups of Redis channels. Without Redis a reader polls for the rest of its life."""
    news = asyncio.Event()
    listener = asyncio.create_task(_listen(redis_url, channels, news))
    try:
        yield Wakeups(news, listener)
    finally:
        listener.cancel()
        # Bounded: a reader that has everything must not wait for Redis.
        await asyncio.wait({listener}, timeout=_PATIENCE_SECONDS)


async def _listen(redis_url: str, channels: Sequence[str], news: asyncio.Event) -> None:
    try:
        client = redis.asyncio.Redis.from_url(client_url(redis_url), socket_connect_timeout=1.0)
    except ValueError:
        return
    task = asyncio.current_task()
    assert task is not None
    try:
        async with client, client.pubsub(ignore_subscribe_messages=True) as subscription:
            await subscription.subscribe(*channels)
            news.set()  # what was committed before the subscription took hold
            # The client swallows a cancellation that comes while it connects, so it is asked for, too.
            while not task.cancelling():
                if await subscription.get_message(timeout=_PATIENCE_SECONDS) is not None:
                    news.set()
    except (RedisError, OSError):
        news.set()
