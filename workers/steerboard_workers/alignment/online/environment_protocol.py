"""What environments of all kinds are to the rollouts: calls and steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from steerboard_contracts.errors import SteerboardError

# The most characters of an observation.
LONGEST_OBSERVATION = 100_000

Row = Mapping[str, Any]


class EnvironmentFailed(SteerboardError):
    """It is not the environment that was named, it raises, or it returns no step."""

    code = "environment_failed"
    status = 422
    title = "The environment failed"


@dataclass(frozen=True)
class Call:
    """`key` names a rollout; `row` is what `reset` is given; `answers`: all of it so far, none to begin."""

    key: int
    row: Row
    answers: Sequence[str]


@dataclass(frozen=True)
class Step:
    """The environment's part of a turn. `observation`: messages for the model; of the first one, those that replace the
    row's prompt, if any. `reward`: None where it gives none. `lost`: it did not come in time."""

    observation: Sequence[dict[str, Any]] = ()
    reward: float | None = None
    done: bool = False
    lost: bool = False


class Environment(Protocol):
    def step(self, calls: Sequence[Call], most_lost: int) -> list[Step]:
        """The step of each call; every other rollout is forgotten. Once more than `most_lost` had no time, the rest may
        be lost, too. Raises a `SteerboardError` for what no waiting would help."""
        ...

    def end(self) -> None:
        """Forget all rollouts."""
        ...
