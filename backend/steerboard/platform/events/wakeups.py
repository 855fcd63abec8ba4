"""Redis as the wake-up of those who wait for something new in Postgres."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import redis.asyncio
from fastapi import FastAPI
from redis.exceptions import RedisError

from steerboard.platform.events.redis_url import client_url

POLL_SECONDS = 3.0
POLL_SECONDS_WITHOUT_REDIS = 0.5
_TICK_SECONDS = 0.25


async def pause(app: FastAPI, wake: asyncio.Event, listener: asyncio.Task[None]) -> None:
    """Until there may be news. In small steps, so that the server's end is not held up."""
    began = time.monotonic()
    while not wake.is_set() and not app.state.stopping.is_set():
        longest = POLL_SECONDS_WITHOUT_REDIS if listener.done() else POLL_SECONDS
        if time.monotonic() - began >= longest:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(wake.wait(), _TICK_SECONDS)


async def listen(redis_url: str, channel: str, wake: asyncio.Event) -> None:
    """Set `wake` at each message of a Redis channel. Ends when Redis is away; then a stream polls for the rest of its
    life."""
    try:
        client = redis.asyncio.Redis.from_url(client_url(redis_url), socket_connect_timeout=1.0)
    except ValueError:
        return
    try:
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(channel)
            wake.set()  # what was committed before the subscription took hold
            async for message in subscription.listen():
                if message["type"] == "message":
                    wake.set()
    except (RedisError, OSError):
        wake.set()
