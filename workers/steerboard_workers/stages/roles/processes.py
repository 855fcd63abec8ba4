"""The process of one unit: what Ray starts on the unit's devices, and asks."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

import torch

from steerboard_contracts.errors import OutOfMemory, SteerboardError
from steerboard_contracts.online_config import OnlineConfig
from steerboard_workers.stages.oom import first_line, ran_out_of_memory
from steerboard_workers.stages.roles.ray_node import STAGE_VARIABLE
from steerboard_workers.stages.runtime import EventWriter, Stage, failed


class RoleProcess:
    """Does what it is asked; see `RolloutUnit` and `FrozenUnit` for what that may be."""

    def __init__(self) -> None:
        self._unit: Any = None

    def do(self, method: str, *arguments: Any) -> Any:
        """What the unit's method returns; `Failed` for an error of ours that it raised, and a lack of memory."""
        try:
            if method == "open":
                self._unit = _opened(*arguments)
                return None
            return getattr(self._unit, method)(*arguments)
        except SteerboardError as error:
            traceback.print_exc()
            return failed(error)
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            traceback.print_exc()
            return failed(
                OutOfMemory(
                    f"ran out of memory: {first_line(error)}",
                    hint="Lower max_length or micro_tokens, or give the role larger devices.",
                )
            )


def _opened(role: str, *arguments: Any) -> Any:
    stage = Stage.open(Path(os.environ[STAGE_VARIABLE]), EventWriter(2))
    if stage.spec.threads:
        torch.set_num_threads(stage.spec.threads)
    config = stage.spec.config
    assert isinstance(config, OnlineConfig)
    if role == "rollout":
        from steerboard_workers.stages.roles.rollout_unit import rollout_unit

        return rollout_unit(stage, config, *arguments)
    from steerboard_workers.stages.roles.frozen_unit import FrozenUnit

    return FrozenUnit(stage, config)
