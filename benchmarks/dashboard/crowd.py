"""Readers at a steady pace, and one caller who takes all they can get: a process of its own, on raw sockets."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

_SETTLE_SECONDS = 1.0
_CONNECT_AT_ONCE = 5
_PATHS = ("runs?limit=50", "pipelines?limit=20", "models?limit=50", "datasets?limit=50")


@dataclass(frozen=True)
class Request:
    path: str
    body: bytes | None = None

    def encoded(self, host: str, token: str) -> bytes:
        method = "GET" if self.body is None else "POST"
        head = f"{method} /api/v1/projects/default/{self.path} HTTP/1.1\r\nHost: {host}\r\n"
        head += f"Authorization: Bearer {token}\r\n"
        if self.body is None:
            return f"{head}\r\n".encode()
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(self.body)}\r\n\r\n".encode() + self.body


@dataclass(frozen=True)
class Crowd:
    """`readers`: their tokens; each asks once every `pause` seconds. `greedy` are all sent at once, each again as soon
    as it is answered."""

    url: str
    readers: list[str]
    seconds: float
    pause: float
    greedy_token: str
    greedy: list[Request] = field(default_factory=list)


@dataclass
class Answers:
    """`times`: milliseconds of the readers' requests from when they were due. `failed` of the readers, by status;
    `greedy`: the other's, by the first word of the path and the status."""

    times: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    greedy: Counter[str] = field(default_factory=Counter)


def ask(crowd: Crowd) -> Answers:
    context = multiprocessing.get_context("spawn")
    ours, remote = context.Pipe()
    process = context.Process(target=_ask, args=(remote, crowd), daemon=True)
    process.start()
    remote.close()  # so that an end without an answer is seen
    answers: Answers = ours.recv()
    process.join()
    return answers


def _ask(pipe: Connection, crowd: Crowd) -> None:
    pipe.send(asyncio.run(_run(crowd)))


async def _run(crowd: Crowd) -> Answers:
    answers = Answers()
    address = urlsplit(crowd.url)
    people = [_Caller(address.hostname or "127.0.0.1", address.port or 80, token) for token in crowd.readers]
    for first in range(0, len(people), _CONNECT_AT_ONCE):
        await asyncio.gather(
            *(person.status(Request(_PATHS[0])) for person in people[first : first + _CONNECT_AT_ONCE])
        )
    start = time.perf_counter() + _SETTLE_SECONDS
    greedy = [
        asyncio.create_task(
            _repeat(_Caller(address.hostname or "127.0.0.1", address.port or 80, crowd.greedy_token), request, answers)
        )
        for request in crowd.greedy
    ]
    await asyncio.gather(
        *(
            _read(person, crowd, start + crowd.pause * place / len(people), answers)
            for place, person in enumerate(people)
        )
    )
    for task in greedy:
        task.cancel()
    await asyncio.gather(*greedy, return_exceptions=True)
    return answers


async def _read(caller: _Caller, crowd: Crowd, start: float, answers: Answers) -> None:
    for turn in range(int(crowd.seconds / crowd.pause)):
        due = start + turn * crowd.pause
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        status = await caller.status(Request(_PATHS[turn % len(_PATHS)]))
        answers.times.append((time.perf_counter() - due) * 1000)
        if status != 200:
            answers.failed[str(status)] += 1


async def _repeat(caller: _Caller, request: Request, answers: Answers) -> None:
    while True:
        status = await caller.status(request)
        answers.greedy[f"{request.path.partition('?')[0].rpartition('/')[2]} {status}"] += 1


class _Caller:
    """One connection, made again when the server has closed it."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._host, self._port, self._token = host, port, token
        self._writer: asyncio.StreamWriter | None = None

    async def status(self, request: Request) -> int:
        for _ in range(2):
            if self._writer is None:
                self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
            self._writer.write(request.encoded(self._host, self._token))
            try:
                head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            except (asyncio.IncompleteReadError, ConnectionError):
                self._writer = None
                continue
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
            await self._reader.readexactly(int(length.split(b":")[1]))
            return int(head.split()[1])
        return 0
