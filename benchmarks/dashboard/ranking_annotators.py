"""Annotators of a benchmark: each submits a ranking each second, on raw sockets in one event loop.

A whole HTTP client would take as much of the two cores as the server that is measured.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

_AHEAD = 3
_TWICE = 0.05
_SETTLE_SECONDS = 1.0
_BEGIN_AT_ONCE = 4


@dataclass(frozen=True)
class AnnotatorLoad:
    """`cookies`: (cookie header, CSRF token) of each annotator. `apart`: they ask for the next items by other calls."""

    url: str
    campaign: str
    cookies: list[tuple[str, str]]
    seconds: int
    apart: bool


@dataclass(frozen=True)
class Submitted:
    """A submission that the server confirmed. `milliseconds`: from when it was due to its answer."""

    task: str
    ranks: list[int]
    milliseconds: float


@dataclass
class Done:
    submitted: list[Submitted] = field(default_factory=list)
    next_ms: list[float] = field(default_factory=list)
    sent_twice: int = 0
    reconnected: int = 0
    failed: dict[str, int] = field(default_factory=dict)


async def rank(load: AnnotatorLoad) -> Done:
    """Everyone at the same pace, each from another moment of the second on."""
    done = Done()
    people = [_Annotator(load, number, done) for number in range(len(load.cookies))]
    for first in range(0, len(people), _BEGIN_AT_ONCE):
        await asyncio.gather(*(person.begin() for person in people[first : first + _BEGIN_AT_ONCE]))
    start = time.perf_counter() + _SETTLE_SECONDS
    await asyncio.gather(*(person.work(start + number / len(people)) for number, person in enumerate(people)))
    return done


class _Annotator:
    def __init__(self, load: AnnotatorLoad, number: int, done: Done) -> None:
        self._asked, self._done = load, done
        self._cookie, self._csrf = load.cookies[number]
        self._rng = random.Random(number)
        self._hand: list[dict[str, Any]] = []
        address = urlsplit(load.url)
        self._host, self._port = address.hostname or "127.0.0.1", address.port or 80

    async def begin(self) -> None:
        await self._connect()
        await self._next()

    async def _connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def work(self, start: float) -> None:
        # The server lets go of connections that were quiet for some seconds, as this one was since `begin`.
        self._writer.close()
        await self._connect()
        for turn in range(self._asked.seconds):
            due = start + turn
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await self._submit(due)
            if self._asked.apart:
                began = time.perf_counter()
                await self._next()
                self._done.next_ms.append((time.perf_counter() - began) * 1000)
        self._writer.close()

    async def _submit(self, due: float) -> None:
        if not self._hand:
            self._fail("no item was at hand")
            return
        task = self._hand.pop(0)
        answers = len(task["answers"])
        # Competition ranks, as they are stored, with ties.
        chosen = [self._rng.randint(1, answers) for _ in range(answers)]
        ranks = [1 + sum(other < score for other in chosen) for score in chosen]
        body = {"ranks": ranks, "seconds": 1.0, "submission": f"bench-{task['id']}"}
        if not self._asked.apart:
            body["ahead"] = _AHEAD
        path = f"tasks/{task['id']}/submit"
        status, answer = await self._post(path, body)
        took = (time.perf_counter() - due) * 1000
        if status != 200:
            self._fail(f"submit {status} {answer.get('code')}")
            return
        self._done.submitted.append(Submitted(task["id"], ranks, took))
        if not self._asked.apart:
            self._hand = answer["items"]
        if self._rng.random() < _TWICE:
            self._done.sent_twice += 1
            again, _ = await self._post(path, body)
            if again != 200:
                self._fail(f"the same submission again {again}")

    async def _next(self) -> None:
        status, answer = await self._post(f"{self._asked.campaign}/next", {"ahead": _AHEAD})
        if status == 200:
            self._hand = answer["items"]
        else:
            self._fail(f"next {status} {answer.get('code')}")

    def _fail(self, why: str) -> None:
        self._done.failed[why] = self._done.failed.get(why, 0) + 1

    async def _post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        content = orjson.dumps(body)
        head = (
            f"POST /api/v1/projects/default/rankings/{path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Cookie: {self._cookie}\r\nX-CSRF-Token: {self._csrf}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        try:
            head_bytes = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            # As a browser does; whether the server had done it already makes no difference to it.
            self._done.reconnected += 1
            await self._connect()
            self._writer.write(head.encode() + content)
            head_bytes = await self._reader.readuntil(b"\r\n\r\n")
        answer = head_bytes.decode("latin-1").lower()
        status = int(answer.split(" ", 2)[1])
        length = int(answer.split("content-length: ", 1)[1].split("\r\n", 1)[0])
        given: dict[str, Any] = orjson.loads(await self._reader.readexactly(length))
        return status, given
