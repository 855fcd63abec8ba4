"""How many requests use the database at once, and how many of them are one caller's.

A request keeps one connection over several steps, each of them in a thread. Without a bound, threads that wait for a
connection could take every thread, and those that hold the connections would never come to an end. Without a share for
each caller, one who sends many slow requests would hold up everyone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar, TypeVarTuple

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool

from steerboard.platform.fair_slots import PLATFORM, FairSlots
from steerboard.platform.http.body_limits import Body
from steerboard.platform.http.callers import caller_of
from steerboard.platform.http.errors import ClientGone
from steerboard_contracts.errors import SteerboardError

T = TypeVar("T")
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Arguments = TypeVarTuple("Arguments")
Pool = Literal["requests", "computing", "processes", "rankings"]

AT_ONCE = 14
# At once, and of one caller. `computing`: what takes a core, and so the interpreter from all others, for longer than a
# moment. `processes`: work of the processes of imports, of which there are as many. `rankings`: these are short and
# many: more threads would only wait for each other at the interpreter's lock, and with a hundred annotators that took
# longer than the work itself.
_POOLS: dict[Pool, tuple[int, int]] = {
    "requests": (AT_ONCE, 5),
    "computing": (2, 1),
    "processes": (4, 2),
    "rankings": (5, 2),
}
# Connections that the API keeps, and as many more when it needs them: above all that its pools take at once, since some
# requests take a second one for a moment, and so do the server's own threads.
CONNECTIONS = 14


def make_pools() -> dict[Pool, FairSlots]:
    return {name: FairSlots(at_once, share) for name, (at_once, share) in _POOLS.items()}


def in_pool(pool: Pool) -> Callable[[Endpoint], Endpoint]:
    """Decorator of an endpoint whose requests take their slots there."""

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.pool = pool  # type: ignore[attr-defined]
        return endpoint

    return mark


async def take_slot(request: Request) -> AsyncIterator[None]:
    """Dependency: wait, without a thread, until one may use the database. Raises `ClientGone`."""
    pool: Pool = getattr(request.scope.get("endpoint"), "pool", "requests")
    async with slot_for(request, pool):
        if pool != "computing":
            yield
            return
        gone = request.state.client_gone = threading.Event()
        departure = asyncio.ensure_future(departure_of(request))
        departure.add_done_callback(lambda _: gone.set())
        try:
            yield
        finally:
            departure.cancel()


def has_left(request: Request) -> Callable[[], bool]:
    """A check for work of the pool `computing` that can be stopped: whether the client has closed the connection."""
    gone: threading.Event = request.state.client_gone
    return gone.is_set


@asynccontextmanager
async def slot_for(request: Request, pool: Pool = "requests") -> AsyncIterator[None]:
    """Raises `ClientGone` when the client closes the connection before its turn."""
    slots: FairSlots = request.app.state.pools[pool]
    caller = caller_of(request)
    if not slots.take_now(caller):
        await _take_unless_gone(request, slots, caller)
    try:
        yield
    finally:
        slots.give_back(caller)


async def in_turn(request: Request, read: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """A call in a thread that uses the database, for a request that holds no slot. Raises `ClientGone`."""
    async with slot_for(request):
        return await run_in_threadpool(read, *arguments)


async def in_slot(app: FastAPI, read: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """The same for work of the server itself, or that continues after a request was answered."""
    slots: FairSlots = app.state.pools["requests"]
    await slots.take(PLATFORM)
    try:
        return await run_in_threadpool(read, *arguments)
    finally:
        slots.give_back(PLATFORM)


async def _take_unless_gone(request: Request, slots: FairSlots, caller: str) -> None:
    if Body.of(request.scope).being_read:
        # A large body's sender is being identified, for example. Only its reader notices that the client has left.
        await slots.take(caller)
        return
    turn = asyncio.ensure_future(slots.take(caller))
    departure = asyncio.ensure_future(departure_of(request))
    try:
        await asyncio.wait((turn, departure), return_when=asyncio.FIRST_COMPLETED)
        if not turn.done():
            raise ClientGone("the client closed the connection before its turn")
    except BaseException:
        if turn.done() and not turn.cancelled():
            slots.give_back(caller)
        turn.cancel()
        raise
    finally:
        departure.cancel()


async def departure_of(request: Request) -> None:
    """Waits until the client has closed the connection. A body was read before."""
    try:
        while (await request.receive())["type"] != "http.disconnect":
            pass
    except SteerboardError:
        # A body that no one reads is too large or too slow; the client may still be there.
        await asyncio.Event().wait()
