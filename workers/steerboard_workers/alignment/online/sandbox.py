"""Code of a file that the operator allows, in a process of its own: with a limit for its time and its memory, and with
no variable of this one's environment. It ends with this process, however that ends.

The modules that start such a process are its program as well, and begin that with `channel`. Its first line is the
code, each further one a call; it answers by a line each.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, TextIO

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.files.local_folders import LocalFolders

MEMORY = 4 << 30
START_SECONDS = 60.0
# The bytes of a file, and the characters of a text that are shown.
LONGEST, SHOWN = 1 << 20, 200
_PR_SET_PDEATHSIG = 1


class Silent(Exception):
    """No reply in time, or the process has ended."""


def allowed_code(file: str, sha256: str, folders: LocalFolders, failure: type[SteerboardError]) -> str:
    """The text of a file below the allowed folders. Raises `FolderNotAllowed`, and `failure` for another file than the
    one that was named."""
    content = folders.read(file, LONGEST)
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise failure(
            f"{file} has the SHA-256 {digest}, and the run asks for {sha256}",
            hint="Give the hash of the file as it is now, if that is what you want to run.",
        )
    return content.decode("utf-8", "replace")


class Sandbox:
    """`module`: the program; `code` of the file `name`."""

    def __init__(self, module: str, code: str, name: str, failure: type[SteerboardError]) -> None:
        """Raises `failure` for code that cannot be imported."""
        self._module, self._code, self._name, self._failure = module, code, name, failure
        self.child: subprocess.Popen[bytes] | None = None
        try:
            self._start()
        except Silent:
            raise failure(f"{name} is not imported within {START_SECONDS:g} seconds") from None

    def ask(self, message: Any, most: int, seconds: float) -> dict[str, Any]:
        """The reply, of `most` bytes. Raises `Silent`, after which there is no process; the next call starts one."""
        if self.child is None:
            self._start()
        return self._told(message, most, seconds)

    def _start(self) -> None:
        passed = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self.child = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**passed, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
        reply = self._told({"code": self._code, "name": self._name, "parent": os.getpid()}, 0, START_SECONDS)
        if "error" in reply:
            self._end()
            raise self._failure(f"{self._name}: {reply['error']}")

    def _told(self, message: Any, most: int, seconds: float) -> dict[str, Any]:
        child = self.child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        ends, line = time.monotonic() + seconds, b""
        try:
            child.stdin.write(json.dumps(message).encode() + b"\n")
            child.stdin.flush()
            while not line.endswith(b"\n"):
                ready, _, _ = select.select([child.stdout], [], [], max(0.0, ends - time.monotonic()))
                part = os.read(child.stdout.fileno(), 1 << 16) if ready else b""
                line += part
                if not part or len(line) > most + (1 << 16):
                    raise Silent
        except (BrokenPipeError, Silent):
            self._end()
            raise Silent from None
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _end(self) -> None:
        child, self.child = self.child, None
        if child is not None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            with suppress(BrokenPipeError):
                child.communicate()


# -- the program ------------------------------------------------------------------------------------------------------


def channel() -> tuple[TextIO, TextIO, dict[str, Any]] | None:
    """(calls, replies, the code and its name), once the limits hold; None where the process that asked has ended."""
    given, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    first: dict[str, Any] = json.loads(given.readline())
    return (given, replies, first) if os.getppid() == first["parent"] else None


def imported(first: dict[str, Any], module: str) -> dict[str, Any]:
    """The names that the code defines. Raises what it raises."""
    names: dict[str, Any] = {"__name__": module, "__file__": first["name"]}
    exec(compile(first["code"], first["name"], "exec"), names)
    return names


def said(replies: TextIO, reply: dict[str, Any]) -> None:
    print(json.dumps(reply), file=replies, flush=True)


def described(error: BaseException) -> str:
    """An error with the line of the code in which it was raised."""
    at, place = error.__traceback__, ""
    while at is not None:
        place, at = f" (line {at.tb_lineno})", at.tb_next
    return f"{type(error).__name__}: {error}"[:SHOWN] + place
