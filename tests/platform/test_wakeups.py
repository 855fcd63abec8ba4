from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from steerboard.platform.events.redis_url import connect
from steerboard.platform.events.wakeups import listening

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs in a thread of its own: a browser of earlier tests has its loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def test_a_reader_that_ends_while_redis_is_being_connected_does_not_wait_for_it(redis_url: str) -> None:
    async def read() -> float:
        began = time.monotonic()
        for steps in range(60):
            async with listening(redis_url, "channel"):
                for _ in range(steps):
                    await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1, "no listener is left"
        return time.monotonic() - began

    assert run(read()) < 10


def test_a_message_wakes_a_reader_who_listens(redis_url: str) -> None:
    async def hear() -> None:
        async with listening(redis_url, "channel") as wakeups, asyncio.timeout(20):
            await wakeups.news.wait()  # the subscription took hold
            wakeups.news.clear()
            with connect(redis_url) as client:
                assert client.publish("channel", "news") == 1
            await wakeups.news.wait()

    run(hear())
