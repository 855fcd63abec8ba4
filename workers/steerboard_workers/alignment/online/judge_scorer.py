"""Rewards of an LLM judge, which the supervisor asks: a stage knows neither its endpoint nor the key."""

from __future__ import annotations

import json
import math
import random
import socket
from collections.abc import Sequence
from typing import Any

from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.online.judge_reward import JudgeReward


class JudgeUnavailable(SteerboardError):
    """The judge gives no rewards."""

    code = "judge_failed"
    status = 502
    title = "The judge failed"


class JudgeScorer:
    """The judge at `place` among the rules. `figures`: its requests, answers that were known, and cost so far, as a
    run charts them."""

    def __init__(self, rule: JudgeReward, place: int, path: str) -> None:
        """Raises `BadInput` where no worker asks judges for this stage."""
        assert rule.pinned is not None, "a run pins its judges when it is made"
        if not path:
            raise BadInput(
                f"the rewards of judge {rule.judge!r} need a worker, which asks its endpoint",
                code="no_judge",
                hint="Start it as a run: a stage by hand has no key to the endpoint.",
            )
        self.groupwise = rule.pinned.groupwise
        self.figures: dict[str, float] = {}
        self._rule = rule
        self._place = place
        self._path = path
        self._socket: socket.socket | None = None

    def asked_about(self, groups: Sequence[int], sampling: int) -> list[int]:
        """The places of the answers that it is asked about at the sampling of this number: none between those of
        `every`, and the same ones again after a resumption. Of judges that rank, whole groups."""
        if sampling % self._rule.every:
            return []
        units = sorted(set(groups)) if self.groupwise else list(range(len(groups)))
        number = math.ceil(self._rule.share * len(units) - 1e-9)
        drawn = set(random.Random(sampling).sample(units, number))
        return [place for place, group in enumerate(groups) if (group if self.groupwise else place) in drawn]

    def score(
        self,
        groups: Sequence[int],
        prompts: Sequence[Any],
        answers: Sequence[str],
        references: Sequence[str | None],
    ) -> list[float]:
        """The reward of each answer, NaN for one without a usable verdict. Answers of one number in `groups` are to one
        prompt.

        Raises `JudgeUnavailable` with the code of what failed.
        """
        columns = {"groups": groups, "prompts": prompts, "answers": answers, "references": references}
        reply = self._told({"place": self._place} | {name: list(column) for name, column in columns.items()})
        if "error" in reply:
            failed = JudgeUnavailable(
                reply["error"]["detail"], code=reply["error"]["code"], hint=reply["error"]["hint"]
            )
            failed.retryable = reply["error"]["retryable"]
            raise failed
        self.figures = {name: float(reply[name]) for name in ("requests", "cached", "cost") if reply[name] is not None}
        return [math.nan if reward is None else float(reward) for reward in reply["rewards"]]

    def _told(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._socket.connect(self._path)
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            with self._socket.makefile("rb") as replies:
                line = replies.readline()
        except OSError as error:
            line, problem = b"", type(error).__name__
        else:
            problem = "it hung up"
        if not line.endswith(b"\n"):
            failed = JudgeUnavailable(f"The worker asks no judge any more: {problem}.", hint="Resume the run.")
            failed.retryable = True
            raise failed
        reply: dict[str, Any] = json.loads(line)
        return reply
