"""Rewards and environments from outside of the platform: who gives them, and how processes of one run share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import torch

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.online.environments import OpenEnvServer, PythonEnvironment
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.online.reward_rules import HttpReward, PythonReward
from steerboard_workers.alignment.online.environment import PythonProcess
from steerboard_workers.alignment.online.environment_protocol import Environment
from steerboard_workers.alignment.online.openenv import OpenEnv
from steerboard_workers.alignment.online.reward_endpoint import RewardEndpoint
from steerboard_workers.alignment.online.reward_function import RewardFunction

Value = TypeVar("Value")


class Scorer(Protocol):
    def score(
        self, prompts: Sequence[Any], answers: Sequence[str], references: Sequence[str | None], most_lost: int
    ) -> list[float]:
        """A reward of each answer, NaN for one without; once more than `most_lost` had no time, the rest has none
        either. Raises a `SteerboardError` for what no waiting would help."""
        ...


def scorer_of(rule: PythonReward | HttpReward, access: RewardAccess) -> Scorer:
    """Raises `FolderNotAllowed`, `RewardFunctionFailed`, `BadUrl`, `AddressRefused`."""
    if isinstance(rule, PythonReward):
        return RewardFunction.open(rule, access.folders)
    return RewardEndpoint(rule, access.allowed_private)


def environment_of(config: PythonEnvironment | OpenEnvServer, access: RewardAccess) -> Environment:
    """Raises `FolderNotAllowed`, `EnvironmentFailed`, `BadUrl`, `AddressRefused`."""
    if isinstance(config, PythonEnvironment):
        return PythonProcess.open(config, access.folders)
    return OpenEnv(config, access.allowed_private)


def from_main(compute: Callable[[], list[Value]]) -> list[Value]:
    """What the first process of a run finds, on all of them: no one is asked twice, nor answers differently."""
    if not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1:
        return compute()
    shared: list[Any] = [None]
    if torch.distributed.get_rank() == 0:
        try:
            shared = [compute()]
        except SteerboardError as error:
            shared = [error]
    torch.distributed.broadcast_object_list(shared, src=0)
    if isinstance(shared[0], SteerboardError):
        raise shared[0]
    values: list[Value] = shared[0]
    return values
