"""How many requests use the database at once.

A request keeps one connection over several steps, each of them in a thread. Without a bound, threads that wait for a
connection could take every thread, and those that hold the connections would never come to an end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar, TypeVarTuple

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

# Fewer than a pool's connections: some requests take a second one for a moment, and so do the server's own threads.
AT_ONCE = 14
# Of rankings, which are short and many: more threads would only wait for each other at the interpreter's lock, and with
# a hundred annotators that took longer than the work itself.
RANKINGS_AT_ONCE = 5


def make_slots(at_once: int = AT_ONCE) -> asyncio.Semaphore:
    return asyncio.Semaphore(at_once)


async def take_slot(request: Request) -> AsyncIterator[None]:
    """Dependency: wait, without a thread, until one may use the database."""
    async with request.app.state.slots:
        yield


async def in_slot(app: FastAPI, read: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """A call in a thread that uses the database, for work that continues after a request was answered."""
    async with app.state.slots:
        return await run_in_threadpool(read, *arguments)
