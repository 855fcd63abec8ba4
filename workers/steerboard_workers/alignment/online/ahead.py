"""The next sampling, begun before its answers are asked for: an engine works on it while others are learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from steerboard_workers.alignment.rollouts import Begun, LivePolicy, Rollout

Groups = list[list[Rollout]]


class Ahead:
    """Holds at most one sampling, so that no answer is of weights before those that sampled the ones learned last."""

    def __init__(self) -> None:
        self._begun: tuple[LivePolicy, Begun] | None = None
        self._groups: Groups | None = None

    def begin(self, policy: LivePolicy, begun: Begun) -> None:
        self._begun = (policy, begun)

    def take(self) -> Groups | None:
        """The answers, when they are all there; None where no sampling was begun."""
        if self._begun is not None:
            policy, begun = self._begun
            self._groups, self._begun = policy.finish(begun), None
        groups, self._groups = self._groups, None
        return groups

    def state(self) -> list[list[dict[str, Any]]] | None:
        """What a checkpoint keeps: these answers are of weights that a resumed run no longer has. Waits for them."""
        self._groups = self.take()
        return None if self._groups is None else [[_packed(rollout) for rollout in group] for group in self._groups]

    def restore(self, state: Sequence[Sequence[Mapping[str, Any]]] | None) -> None:
        self._groups = None if state is None else [[_unpacked(rollout) for rollout in group] for group in state]


def _packed(rollout: Rollout) -> dict[str, Any]:
    of_tokens = {"ids": torch.from_numpy(rollout.ids.copy()), "log_probs": torch.from_numpy(rollout.log_probs.copy())}
    return {"row": rollout.row, "n": rollout.n, "text": rollout.text, "finished": rollout.finished, **of_tokens}


def _unpacked(packed: Mapping[str, Any]) -> Rollout:
    of_tokens: dict[str, np.ndarray] = {name: packed[name].numpy() for name in ("ids", "log_probs")}
    return Rollout(**{**packed, **of_tokens})
