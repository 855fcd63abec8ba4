"""A server that speaks OpenEnv's WebSocket protocol for an environment file of ours, as a process.

    python openenv_server.py FILE PORT SESSIONS

prints its port. Its action is {"message": TEXT}, its observation {"text", "turns", "open"}: `open` is the number of
sessions at that time. A ValueError of the environment is a VALIDATION_ERROR, another error an EXECUTION_ERROR, and
SystemExit ends the connection without a word.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, serve


class Server:
    def __init__(self, file: str, sessions: int) -> None:
        self._kind = runpy.run_path(file)["Environment"]
        self._sessions = sessions
        self._open = 0

    async def talk(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        if socket.request.path != "/ws" or self._open >= self._sessions:
            await socket.send(_error("CAPACITY_REACHED", f"{self._open}/{self._sessions} sessions"))
            return
        self._open += 1
        try:
            await self._session(socket)
        finally:
            self._open -= 1

    async def _session(self, socket: ServerConnection) -> None:
        environment, turns = self._kind(), 0
        async for text in socket:
            message = json.loads(text)
            if message["type"] == "close":
                return
            try:
                if message["type"] == "reset":
                    said, reward, done = environment.reset(message["data"]), None, False
                else:
                    turns += 1
                    action = message["data"]["message"]
                    said, reward, done = await asyncio.to_thread(environment.step, action)
            except SystemExit:
                return
            except ValueError as error:
                await socket.send(
                    _error("VALIDATION_ERROR", "Invalid message", [{"loc": ["message"], "msg": str(error)}])
                )
                continue
            except Exception as error:
                await socket.send(_error("EXECUTION_ERROR", str(error)))
                continue
            observation = {"text": said, "turns": [{"content": said}] * turns, "open": self._open}
            data = {"observation": observation, "reward": reward, "done": done}
            await socket.send(json.dumps({"type": "observation", "data": data}))


def _error(code: str, message: str, errors: list[dict[str, Any]] | None = None) -> str:
    return json.dumps({"type": "error", "data": {"code": code, "message": message, "errors": errors or []}})


async def main(file: str, port: int, sessions: int) -> None:
    async with serve(Server(file, sessions).talk, "127.0.0.1", port) as server:
        (socket,) = server.sockets
        print(socket.getsockname()[1], flush=True)
        await server.serve_forever()


class OpenEnvProcess:
    """The process, which may be killed and started again at the same address."""

    def __init__(self, file: Path, sessions: int = 1000) -> None:
        self._file, self._sessions = file, sessions
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, __file__, str(self._file), str(self.port), str(self._sessions)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def openenv_server(file: Path, sessions: int = 1000) -> Iterator[OpenEnvProcess]:
    process = OpenEnvProcess(file, sessions)
    try:
        yield process
    finally:
        process.kill()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
