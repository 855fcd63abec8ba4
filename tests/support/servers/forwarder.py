"""A link to a server that can be cut without a word: no reset and no end of a stream, as when packets get lost.

    python forwarder.py PORT_OR_SOCKET

prints the port of 127.0.0.1 at which it listens. SIGUSR1 cuts it: whatever is open is never carried on, though no one
closes it, and what is opened now is accepted and not served. SIGUSR2 repairs it for connections opened from then on. To
freeze it with all that it holds, and thaw it again, stop and continue the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator


class Link:
    def __init__(self, target: str) -> None:
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._kept: list[asyncio.StreamWriter] = []

    def cut(self) -> None:
        self._open.clear()
        for task in self._tasks:
            task.cancel()

    def mend(self) -> None:
        self._open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        if "/" in self._target:
            there = await asyncio.open_unix_connection(self._target)
        else:
            there = await asyncio.open_connection("127.0.0.1", int(self._target))
        self._kept += [writer, there[1]]
        for source, sink in ((reader, there[1]), (there[0], writer)):
            task = asyncio.ensure_future(self._carry(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
            sink.close()


async def main(target: str) -> None:
    link = Link(target)
    server = await asyncio.start_server(link.serve, "127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, link.cut)
    loop.add_signal_handler(signal.SIGUSR2, link.mend)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Forwarder:
    """The process. `kind` of a cut: `frozen`, or `forgotten` when no connection from before it is ever heard again."""

    def __init__(self, target: str) -> None:
        self._process = subprocess.Popen([sys.executable, __file__, target], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    @contextlib.contextmanager
    def cut(self, kind: str) -> Iterator[None]:
        before, after = {
            "frozen": (signal.SIGSTOP, signal.SIGCONT),
            "forgotten": (signal.SIGUSR1, signal.SIGUSR2),
        }[kind]
        os.kill(self._process.pid, before)
        yield
        os.kill(self._process.pid, after)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
