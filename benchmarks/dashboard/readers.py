"""Readers of the live stream, a process of their own on raw sockets.

The frozen ones ask for everything from the first event on, far more than sockets buffer, and never read a byte.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

import orjson
from harness.measure import percentile
from harness.running_platform import Bench

CATCH_UP_SECONDS = 90.0
_CONNECT_SECONDS = 120.0
_CONNECT_AT_ONCE = 5


@contextmanager
def reading(bench: Bench, live: int, frozen: int, start: int) -> Iterator[Connection]:
    """Connected. Send the pipe the last event's id; it answers with what the readers heard."""
    context = multiprocessing.get_context("spawn")
    ours, remote = context.Pipe()
    process = context.Process(target=_read_all, args=(remote, bench.url, bench.token, live, frozen, start), daemon=True)
    process.start()
    try:
        if not ours.poll(_CONNECT_SECONDS) or ours.recv() != "connected":
            raise RuntimeError("the readers could not connect")
        yield ours
    finally:
        process.terminate()
        process.join()


def _read_all(pipe: Connection, url: str, token: str, live: int, frozen: int, start: int) -> None:
    asyncio.run(_Readers(pipe, url, token, start).run(live, frozen))


class _Readers:
    """All in one event loop. A reader keeps the ids that it was given, in their order."""

    def __init__(self, pipe: Connection, url: str, token: str, start: int) -> None:
        self._pipe, self._token, self._start = pipe, token, start
        address = urlsplit(url)
        self._host, self._port = address.hostname or "127.0.0.1", address.port or 80
        self._late: list[float] = []

    async def run(self, live: int, frozen: int) -> None:
        heard: list[list[int]] = [[] for _ in range(live)]
        tasks: list[asyncio.Task[None]] = []
        for first in range(0, live, _CONNECT_AT_ONCE):
            group = [(events, asyncio.Event()) for events in heard[first : first + _CONNECT_AT_ONCE]]
            tasks += [asyncio.create_task(self._follow(self._start, events, begun)) for events, begun in group]
            await asyncio.gather(*(begun.wait() for _, begun in group))
        stalled = []
        for _ in range(frozen):
            stalled.append(self._frozen())
            await asyncio.sleep(0.1)
        self._pipe.send("connected")
        last = await asyncio.to_thread(self._pipe.recv)
        await self._until(last, heard)
        for task in tasks:
            task.cancel()
        late = list(self._late)  # without what is replayed below
        middle = self._start + (last - self._start) // 2
        again: list[int] = []
        follower = asyncio.create_task(self._follow(middle, again, asyncio.Event()))
        await self._until(last, [again])
        await asyncio.sleep(1)  # one event too many would come now
        follower.cancel()
        expected = list(range(self._start + 1, last + 1))
        wrong = sum(events != expected for events in heard)
        self._pipe.send(
            {
                "exact": wrong == 0 and bool(expected),
                "wrong": wrong,
                "reconnected_exact": again == list(range(middle + 1, last + 1)),
                "delivery_p50_ms": percentile(late, 0.50),
                "delivery_p99_ms": percentile(late, 0.99),
            }
        )
        for client in stalled:
            client.close()

    async def _until(self, last: int, heard: list[list[int]]) -> None:
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while time.monotonic() < deadline and any(not events or events[-1] < last for events in heard):
            await asyncio.sleep(0.1)

    def _frozen(self) -> socket.socket:
        """Asks for every event there ever was, and never reads the answer."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((self._host, self._port))
        client.sendall(self._request(0))
        return client

    def _request(self, after: int) -> bytes:
        return (
            f"GET /api/v1/projects/default/events HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Authorization: Bearer {self._token}\r\nLast-Event-ID: {after}\r\n\r\n"
        ).encode()

    async def _follow(self, after: int, heard: list[int], begun: asyncio.Event) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(self._request(after))
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                raise RuntimeError(head.decode())
            begun.set()
            rest = b""
            while True:
                # Chunks of the transfer encoding: a length in hexadecimal digits, then that many bytes.
                length = int(await reader.readline(), 16)
                rest += (await reader.readexactly(length + 2))[:-2]
                *whole, rest = rest.split(b"\n\n")
                for block in whole:
                    self._note(block, heard)
        finally:
            writer.close()

    def _note(self, block: bytes, heard: list[int]) -> None:
        if not block.startswith(b"id: "):
            return
        id_, _, data = block.split(b"\n", 2)
        heard.append(int(id_[4:]))
        event = orjson.loads(data.removeprefix(b"data: "))
        made = time.time() - datetime.fromisoformat(event["created_at"]).timestamp()
        self._late.append(made * 1000)
