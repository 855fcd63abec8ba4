"""A reward function that the operator allows, in a process of its own (`sandbox`).

As a program, this file is that process.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.online.reward_rules import PythonReward
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

# The bytes of one reward in a reply.
_REPLY = 64
_PROGRAM = "steerboard_workers.alignment.online.reward_function"


class RewardFunctionFailed(SteerboardError):
    """It is not the function that was named, it raises, or it returns no rewards."""

    code = "reward_function_failed"
    status = 422
    title = "The reward function failed"


class _WrongRewards(Exception):
    """What was returned is not a list of as many numbers."""


class RewardFunction:
    """`seconds` for one call."""

    def __init__(self, code: str, name: str, seconds: float) -> None:
        """Raises `RewardFunctionFailed` unless the code defines `reward`."""
        self._name, self._seconds = name, seconds
        self.sandbox = Sandbox(_PROGRAM, code, name, RewardFunctionFailed)

    @classmethod
    def open(cls, rule: PythonReward, folders: LocalFolders) -> RewardFunction:
        """Raises `FolderNotAllowed`, `RewardFunctionFailed`."""
        return cls(allowed_code(rule.file, rule.sha256, folders, RewardFunctionFailed), rule.file, rule.seconds)

    def score(
        self, prompts: Sequence[Any], answers: Sequence[str], references: Sequence[str | None], most_lost: int
    ) -> list[float]:
        """One call with all; where that takes too long, or too much memory, one for each answer, so that only those
        that do are left out. Raises `RewardFunctionFailed` with the answer on which it raises."""
        given = list(zip(prompts, answers, references, strict=True))
        try:
            return self._call(given)
        except Silent:
            pass
        rewards: list[float] = []
        for row in given:
            try:
                lost = sum(map(math.isnan, rewards)) > most_lost
                rewards += [math.nan] if lost or len(given) == 1 else self._call([row])
            except Silent:
                rewards.append(math.nan)
        return rewards

    def _call(self, given: Sequence[tuple[Any, str, str | None]]) -> list[float]:
        columns = [list(column) for column in zip(*given, strict=True)]
        reply = self.sandbox.ask(columns, _REPLY * len(given), self._seconds)
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


# -- the program ------------------------------------------------------------------------------------------------------


def _serve() -> None:
    opened = channel()
    if opened is None:
        return
    given, replies, first = opened
    reward: Any = None
    try:
        reward = imported(first, "reward").get("reward")
        reply = {} if callable(reward) else {"error": "it defines no `reward(prompts, answers, references)`"}
    except BaseException as error:
        reply = {"error": described(error)}
    said(replies, reply)
    for line in given:
        said(replies, _scored(reward, json.loads(line)))


def _scored(reward: Callable[..., Any], columns: list[list[Any]]) -> dict[str, Any]:
    size = len(columns[0])
    try:
        return _checked(reward(*columns), size)
    except _WrongRewards as error:
        return {"error": str(error)}
    except BaseException as error:
        reply = {"error": described(error)}
    # Asked alone, each answer shows whether it is the one.
    for at in range(size):
        try:
            _checked(reward(*([column[at]] for column in columns)), 1)
        except BaseException as error:
            return {"error": described(error), "sample": at}
    return reply


def _checked(returned: Any, size: int) -> dict[str, Any]:
    try:
        rewards = [math.nan if reward is None else float(reward) for reward in returned]
    except (TypeError, ValueError) as error:
        raise _WrongRewards(f"it returned no list of numbers: {error}"[:SHOWN]) from None
    if len(rewards) != size:
        raise _WrongRewards(f"it returned {len(rewards)} rewards for {size} answers")
    return {"rewards": [reward if math.isfinite(reward) else None for reward in rewards]}


if __name__ == "__main__":
    _serve()
