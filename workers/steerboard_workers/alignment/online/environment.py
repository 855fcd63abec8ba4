"""An environment that the operator allows, in a process of its own (`sandbox`): it answers the answers of rollouts.

A rollout is asked for by its row and all its answers so far. The process keeps what it has begun; one that was started
again, since a call took too long, begins from the row and hears the earlier answers once more.

As a program, this file is that process.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.online.environments import PythonEnvironment
from steerboard_workers.alignment.online.environment_protocol import LONGEST_OBSERVATION, Call, EnvironmentFailed, Step
from steerboard_workers.alignment.online.sandbox import (
    SHOWN,
    Sandbox,
    Silent,
    allowed_code,
    channel,
    described,
    imported,
    said,
)

# The bytes of an observation in a reply.
_REPLY = 8 * LONGEST_OBSERVATION
_PROGRAM = "steerboard_workers.alignment.online.environment"
_ROLES = ("user", "tool")


class PythonProcess:
    """`seconds` for one call."""

    def __init__(self, code: str, name: str, seconds: float) -> None:
        """Raises `EnvironmentFailed` unless the code defines `Environment`."""
        self._name, self._seconds = name, seconds
        self.sandbox = Sandbox(_PROGRAM, code, name, EnvironmentFailed)

    @classmethod
    def open(cls, config: PythonEnvironment, folders: LocalFolders) -> PythonProcess:
        """Raises `FolderNotAllowed`, `EnvironmentFailed`."""
        return cls(allowed_code(config.file, config.sha256, folders, EnvironmentFailed), config.file, config.seconds)

    def step(self, calls: Sequence[Call], most_lost: int) -> list[Step]:
        """One call with all, after which the process has forgotten every other rollout. Where that takes too long, or
        too much memory, one for each, so that only those that do are lost; once more than `most_lost` are, the rest is.

        Raises `EnvironmentFailed` with the answer on which it raises."""
        if not calls:
            return []
        try:
            return self._call(calls, [call.key for call in calls])
        except Silent:
            pass
        steps: list[Step] = []
        for call in calls:
            try:
                given_up = sum(step.lost for step in steps) > most_lost or len(calls) == 1
                steps += [Step(lost=True)] if given_up else self._call([call], [each.key for each in calls])
            except Silent:
                steps.append(Step(lost=True))
        return steps

    def end(self) -> None:
        """Its process forgets them at the next call."""

    def _call(self, calls: Sequence[Call], keys: Sequence[int]) -> list[Step]:
        asked = [{"key": call.key, "row": dict(call.row), "answers": list(call.answers)} for call in calls]
        reply = self.sandbox.ask({"keys": list(keys), "calls": asked}, _REPLY * len(calls), self._seconds)
        if "error" in reply:
            call = calls[reply["call"]]
            said_last = f"on the answer {call.answers[-1][:SHOWN]!r}" if call.answers else "on reset"
            raise EnvironmentFailed(f"{self._name}: {reply['error']}, {said_last} of row {call.row.get('row')}")
        return [Step(**step) for step in reply["steps"]]


# -- the program ------------------------------------------------------------------------------------------------------


class _WrongStep(Exception):
    """What was returned is not what the protocol asks for."""


def _serve() -> None:
    opened = channel()
    if opened is None:
        return
    given, replies, first = opened
    kind: Any = None
    try:
        kind = imported(first, "environment").get("Environment")
        named = all(callable(getattr(kind, name, None)) for name in ("reset", "step"))
        reply = {} if named else {"error": "it defines no class `Environment` with `reset(row)` and `step(answer)`"}
    except BaseException as error:
        reply = {"error": described(error)}
    said(replies, reply)
    begun: dict[int, tuple[Any, int]] = {}
    for line in given:
        asked = json.loads(line)
        begun = {key: begun[key] for key in asked["keys"] if key in begun}
        said(replies, _stepped(kind, begun, asked["calls"]))


def _stepped(kind: Any, begun: dict[int, tuple[Any, int]], calls: list[dict[str, Any]]) -> dict[str, Any]:
    """`begun`: by rollout, its environment and how many answers that has heard."""
    steps = []
    for place, call in enumerate(calls):
        key, answers = call["key"], call["answers"]
        try:
            environment, heard = begun.get(key, (None, -1))
            step: dict[str, Any] = {}
            if not 0 <= heard < len(answers):
                environment, heard = kind(), 0
                step = {"observation": _messages(environment.reset(dict(call["row"])), first=True)}
            for answer in answers[heard:]:
                step = _step(environment.step(answer))
            begun[key] = environment, len(answers)
            steps.append(step)
        except _WrongStep as error:
            return {"error": str(error), "call": place}
        except BaseException as error:
            return {"error": described(error), "call": place}
    return {"steps": steps}


def _step(returned: Any) -> dict[str, Any]:
    if not isinstance(returned, tuple) or len(returned) != 3:
        raise _WrongStep(f"step returned {str(returned)[:SHOWN]!r}, and not (observation, reward, done)")
    observation, reward, done = returned
    try:
        value = math.nan if reward is None else float(reward)
    except (TypeError, ValueError):
        raise _WrongStep(f"step returned the reward {str(reward)[:SHOWN]!r}, which is not a number") from None
    messages = _messages(observation, first=False)
    if not done and not messages:
        raise _WrongStep("step returned neither an observation nor done")
    return {"observation": messages, "reward": value if math.isfinite(value) else None, "done": bool(done)}


def _messages(observation: Any, *, first: bool) -> list[dict[str, Any]]:
    """A text is a turn of the user; None is nothing."""
    if observation is None:
        return []
    given = [{"role": "user", "content": observation}] if isinstance(observation, str) else observation
    given = [given] if isinstance(given, dict) else given
    if not isinstance(given, list | tuple) or not all(isinstance(message, dict) for message in given):
        raise _WrongStep(f"an observation is a text or messages, and not {str(observation)[:SHOWN]!r}")
    for message in given:
        if not isinstance(message.get("content"), str) or not isinstance(message.get("role"), str):
            raise _WrongStep(f"a message needs a role and a content: {str(message)[:SHOWN]!r}")
        if not first and message["role"] not in _ROLES:
            raise _WrongStep(f"an observation has the role {message['role']!r}, and not user or tool")
        if len(message["content"]) > LONGEST_OBSERVATION:
            raise _WrongStep(f"a message has more than {LONGEST_OBSERVATION:,} characters")
    return [dict(message) for message in given]


if __name__ == "__main__":
    _serve()
