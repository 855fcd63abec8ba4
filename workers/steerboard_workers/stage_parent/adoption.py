"""Turns a fork of the stage parent into the guardian and the process that a worker asked for.

The request is read here, in the fork: nothing of a run ever reaches the parent's memory, from which others are forked.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from steerboard_contracts import guardian
from steerboard_workers.stage_parent.footing import footing
from steerboard_workers.stage_parent.identity import MARK, set_command_line, set_mark

# What may be asked for: packages whose `__main__` has a `main`, with the type of its argument.
PROGRAMS: dict[str, type] = {"steerboard_workers.stages": Path, "steerboard_workers.model_host": int}
_REQUEST_BYTES = 1 << 20
_DESCRIPTORS = 16
_PATIENCE_SECONDS = 30.0


class Refused(Exception):
    """The requested fork would differ from a new process."""


class Stale(Refused):
    """The code on disk is no longer what the parent has imported."""


@dataclass(frozen=True)
class Image:
    """What the parent is: the environment that it was started with, and the files of our code that it has imported."""

    environment: dict[str, str]
    sources: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Program:
    module: str
    argument: str


def become(connection: socket.socket, image: Image) -> Program:
    """Returns in the process that runs the program; its parent is a guardian, and goes no further than this."""
    os.setsid()
    connection.settimeout(_PATIENCE_SECONDS)
    try:
        request, received = _receive(connection)
        program = _check(request, image)
        set_mark(request["environment"][MARK])
        os.chdir(request["directory"])
    except Stale as error:
        _refuse(connection, str(error), stale=True)
    except (Refused, OSError, ValueError, KeyError) as error:
        _refuse(connection, f"{error}")
    except Exception as error:
        _refuse(connection, f"{type(error).__name__}: {error}")
    connection.sendall(json.dumps({"pid": os.getpid()}).encode() + b"\n")
    connection.close()
    place(received, request["descriptors"])
    status = request["descriptors"][3]
    guarded = [sys.executable, guardian.__file__, str(status), request["terms"], *request["command"]]
    set_command_line(guarded)
    # A worker that lost patience has started another process by now, and closed the pipe without a word.
    if not _heartbeat():
        os._exit(1)
    guardian.guard(status, guardian.Terms.of(request["terms"]))
    set_command_line(request["command"])
    _settle(request)
    return program


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, received, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, _DESCRIPTORS)
    while not data.endswith(b"\n"):
        more = connection.recv(_REQUEST_BYTES)
        if not more:
            raise Refused("half a request")
        data += more
    return json.loads(data), received


def _check(request: dict[str, Any], image: Image) -> Program:
    """Raises `Refused`."""
    python, flag, module, argument = request["command"]
    if (python, flag) != (sys.executable, "-m") or module not in PROGRAMS:
        raise Refused(f"it runs no {module}")
    wanted, here = request["footing"], footing()
    if differing := sorted(key for key in wanted.keys() | here.keys() if wanted.get(key) != here.get(key)):
        raise Refused(f"the worker differs from it in {', '.join(differing)}")
    given, own = request["environment"], image.environment
    names = (given.keys() | own.keys()) - set(request["late"])
    if differing := sorted(name for name in names if given.get(name) != own.get(name)):
        raise Refused(f"the environment differs in {', '.join(differing)}")
    for path, known in image.sources.items():
        if stamp(path) != known:
            raise Stale(f"{path} has changed")
    return Program(module, argument)


def stamp(path: str) -> tuple[int, int]:
    """Changes with a file; zeros when it is gone."""
    try:
        status = Path(path).stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _refuse(connection: socket.socket, why: str, *, stale: bool = False) -> NoReturn:
    try:
        connection.sendall(json.dumps({"refused": why, "stale": stale}).encode() + b"\n")
    finally:
        os._exit(1)


def place(received: list[int], targets: list[int]) -> None:
    """Give the descriptors the numbers that they are known by, and close all others."""
    above = max(targets) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in received]
    for descriptor, target in zip(moved, targets, strict=True):
        os.dup2(descriptor, target)
    kept = sorted(targets)
    for low, high in zip([-1, *kept], [*kept, os.sysconf("SC_OPEN_MAX")], strict=True):
        if low + 1 < high:
            os.closerange(low + 1, high)


def _heartbeat() -> bool:
    """Whether the worker has sent its first deadline."""
    select.select([0], [], [], _PATIENCE_SECONDS)
    # It stays in the pipe, for the guardian.
    waiting: int = struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, b"\0" * 4))[0]
    return waiting > 0


def _settle(request: dict[str, Any]) -> None:
    """Makes this process one that was started in that folder with that environment, and has imported what the parent
    has."""
    for name in request["late"]:
        value = request["environment"].get(name)
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    sys.path[0] = request["directory"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # `random` sees to itself. Of torch's generators every process begins with the same state.
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
