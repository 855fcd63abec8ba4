"""vLLM in a process of its own, under the Python that has it: both ends of the socket that only the two hold. What they
send each other is pickled, so neither end may be anyone else."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage.spec import EngineProcess
from steerboard_workers.engines.vllm.host import VllmHost
from steerboard_workers.engines.vllm.watchdog import EngineFailed


@dataclass(frozen=True)
class Broken:
    """The process cannot continue, and ends."""

    code: str
    detail: str
    hint: str | None
    retryable: bool


class VllmProcess:
    """A running `VllmServer`, as the process sees it that started it. It ends with this process, or with `close`."""

    def __init__(self, engine: EngineProcess, module: str, variables: Mapping[str, str] | None = None) -> None:
        """`module`: of the server. `variables`: further ones of its environment."""
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [engine.python, "-m", module, str(number)],
                env={**os.environ, **engine.variables, **(variables or {})},
                # What a stage prints are its events; all else is its log.
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[number],
            )
        self._connection = Connection(ours.detach())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def send(self, message: object) -> None:
        """Raises `EngineFailed`."""
        try:
            self._connection.send(message)
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> Any:
        """Waits. Raises `EngineFailed`, which has the code of what broke the process."""
        try:
            message = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if isinstance(message, Broken):
            raise _error(message)
        return message

    def close(self, *, kill: bool = False) -> None:
        """`kill`: without waiting for what it still does."""
        if kill:
            self._process.kill()
        self._connection.close()
        self._process.wait()

    def _ended(self) -> EngineFailed:
        status = self._process.wait()
        return EngineFailed(f"the vLLM process ended with status {status}", hint="The run's log has its last output.")


class VllmServer:
    """The process that has vLLM: does what it is asked until the other end of `connection` is closed. A subclass sets
    `host` as soon as it is there."""

    host: VllmHost | None = None

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def answers(self, asked: Any) -> Iterator[object]:
        """What is sent back for a message. Raises `SteerboardError` for what ends the process."""
        raise NotImplementedError

    def run(self) -> None:
        while True:
            try:
                asked = self._connection.recv()
            except (EOFError, OSError):
                break
            try:
                heard = all(map(self._sent, self.answers(asked)))
            except SteerboardError as error:
                self.give_up(error)
            if not heard:
                break
        if self.host is not None:
            self.host.close()

    def _sent(self, answer: object) -> bool:
        """False: no one is there any more."""
        try:
            self._connection.send(answer)
        except OSError:
            return False
        return True

    def give_up(self, error: SteerboardError) -> NoReturn:
        with suppress(OSError):  # the other end may be gone
            self._connection.send(Broken(error.code, error.detail, error.hint, error.retryable))
        os._exit(1)


def _error(broken: Broken) -> SteerboardError:
    error = EngineFailed(broken.detail, code=broken.code, hint=broken.hint)
    error.retryable = broken.retryable
    return error
