"""A reward function that the operator allows, in a process of its own: with a limit for its time and its memory, and
with no variable of this one's environment.

As a program, this file is that process. Its first line is the code, each further one a call; it answers by a line each.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.online.reward_rules import PythonReward

MEMORY = 4 << 30
START_SECONDS = 60.0
# The bytes of a file, and the characters of an answer that are shown.
LONGEST, SHOWN = 1 << 20, 200
# The bytes of one reward in a reply.
_REPLY = 64
_PR_SET_PDEATHSIG = 1


class RewardFunctionFailed(SteerboardError):
    """It is not the function that was named, it raises, or it returns no rewards."""

    code = "reward_function_failed"
    status = 422
    title = "The reward function failed"


class _WrongRewards(Exception):
    """What was returned is not a list of as many numbers."""


class _Silent(Exception):
    """No reply in time, or the process has ended."""


class RewardFunction:
    """`seconds` for one call."""

    def __init__(self, code: str, name: str, seconds: float) -> None:
        """Raises `RewardFunctionFailed` unless the code defines `reward`."""
        self._code, self._name, self._seconds = code, name, seconds
        self._child: subprocess.Popen[bytes] | None = None
        try:
            self._start()
        except _Silent:
            raise RewardFunctionFailed(f"{name} is not imported within {START_SECONDS:g} seconds") from None

    @classmethod
    def open(cls, rule: PythonReward, folders: LocalFolders) -> RewardFunction:
        """Raises `FolderNotAllowed`, `RewardFunctionFailed`."""
        content = folders.read(rule.file, LONGEST)
        digest = hashlib.sha256(content).hexdigest()
        if digest != rule.sha256:
            raise RewardFunctionFailed(
                f"{rule.file} has the SHA-256 {digest}, and the run asks for {rule.sha256}",
                hint="Give the hash of the file as it is now, if that is what you want to run.",
            )
        return cls(content.decode("utf-8", "replace"), rule.file, rule.seconds)

    def score(
        self, prompts: Sequence[Any], answers: Sequence[str], references: Sequence[str | None], most_lost: int
    ) -> list[float]:
        """One call with all; where that takes too long, or too much memory, one for each answer, so that only those
        that do are left out. Raises `RewardFunctionFailed` with the answer on which it raises."""
        given = list(zip(prompts, answers, references, strict=True))
        try:
            return self._call(given)
        except _Silent:
            pass
        rewards: list[float] = []
        for row in given:
            try:
                lost = sum(map(math.isnan, rewards)) > most_lost
                rewards += [math.nan] if lost or len(given) == 1 else self._call([row])
            except _Silent:
                rewards.append(math.nan)
        return rewards

    def _call(self, given: Sequence[tuple[Any, str, str | None]]) -> list[float]:
        if self._child is None:
            self._start()
        reply = self._told([list(column) for column in zip(*given, strict=True)], len(given), self._seconds)
        if "error" in reply:
            raise self._failed(given, reply)
        return [math.nan if reward is None else float(reward) for reward in reply["rewards"]]

    def _failed(self, given: Sequence[tuple[Any, str, str | None]], reply: dict[str, Any]) -> RewardFunctionFailed:
        at = reply.get("sample")
        shown = ""
        if at is not None:
            prompt, answer, _ = given[at]
            shown = f", on the answer {answer[:SHOWN]!r} to {str(prompt)[:SHOWN]!r}"
        return RewardFunctionFailed(f"{self._name}: {reply['error']}{shown}")

    def _start(self) -> None:
        passed = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**passed, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
        reply = self._told({"code": self._code, "name": self._name, "parent": os.getpid()}, 1, START_SECONDS)
        if "error" in reply:
            self._end()
            raise RewardFunctionFailed(f"{self._name}: {reply['error']}")

    def _told(self, message: Any, size: int, seconds: float) -> dict[str, Any]:
        """The reply. Raises `_Silent`, after which there is no process."""
        child = self._child
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
                if not part or len(line) > _REPLY * size + (1 << 16):
                    raise _Silent
        except (BrokenPipeError, _Silent):
            self._end()
            raise _Silent from None
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            with suppress(BrokenPipeError):
                child.communicate()


# -- the program ------------------------------------------------------------------------------------------------------


def _serve() -> None:
    given, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    first = json.loads(given.readline())
    if os.getppid() != first["parent"]:
        return
    try:
        names: dict[str, Any] = {"__name__": "reward", "__file__": first["name"]}
        exec(compile(first["code"], first["name"], "exec"), names)
        reward: Any = names.get("reward")
        reply = {} if callable(reward) else {"error": "it defines no `reward(prompts, answers, references)`"}
    except BaseException as error:
        reply = {"error": _described(error)}
    print(json.dumps(reply), file=replies, flush=True)
    for line in given:
        print(json.dumps(_scored(reward, json.loads(line))), file=replies, flush=True)


def _scored(reward: Callable[..., Any], columns: list[list[Any]]) -> dict[str, Any]:
    size = len(columns[0])
    try:
        return _checked(reward(*columns), size)
    except _WrongRewards as error:
        return {"error": str(error)}
    except BaseException as error:
        reply = {"error": _described(error)}
    # Asked alone, each answer shows whether it is the one.
    for at in range(size):
        try:
            _checked(reward(*([column[at]] for column in columns)), 1)
        except BaseException as error:
            return {"error": _described(error), "sample": at}
    return reply


def _checked(returned: Any, size: int) -> dict[str, Any]:
    try:
        rewards = [math.nan if reward is None else float(reward) for reward in returned]
    except (TypeError, ValueError) as error:
        raise _WrongRewards(f"it returned no list of numbers: {error}"[:SHOWN]) from None
    if len(rewards) != size:
        raise _WrongRewards(f"it returned {len(rewards)} rewards for {size} answers")
    return {"rewards": [reward if math.isfinite(reward) else None for reward in rewards]}


def _described(error: BaseException) -> str:
    at, place = error.__traceback__, ""
    while at is not None:
        place, at = f" (line {at.tb_lineno})", at.tb_next
    return f"{type(error).__name__}: {error}"[:SHOWN] + place


if __name__ == "__main__":
    _serve()
