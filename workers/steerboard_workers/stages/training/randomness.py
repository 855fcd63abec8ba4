"""The state of all generators that a model may draw from, as a run begins and as a checkpoint keeps it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_states() -> dict[str, Any]:
    """The states of the generators that a model may draw from (dropout). The data order needs none."""
    states: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def gathered_states(processes: int, state: dict[str, Any]) -> list[dict[str, Any]]:
    """Each process's random states, in order of rank."""
    if processes == 1:
        return [state]
    states: list[Any] = [None] * processes
    torch.distributed.all_gather_object(states, state)
    return states
