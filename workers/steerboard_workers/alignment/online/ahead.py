"""Samplings begun before their answers are asked for: an engine works on them while others are learned."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from steerboard_workers.alignment.rollouts import Begun, LivePolicy, Rollout

Groups = list[list[Rollout]]


@dataclass
class SamplingAhead:
    """Sampling `number` by the weights after `step` optimiser steps; both are None where an older checkpoint did not
    keep them. `groups`: the answers, once they are there."""

    number: int | None
    step: int | None
    policy: LivePolicy | None = None
    begun: Begun = None
    groups: Groups | None = None

    def answers(self) -> Groups:
        """Waits for them."""
        if self.groups is None:
            assert self.policy is not None
            self.groups = self.policy.finish(self.begun)
            self.policy = self.begun = None
        return self.groups


class Ahead:
    """Holds so many samplings as are begun, the oldest first: no answer is of older weights than their number lets."""

    def __init__(self) -> None:
        self._samplings: deque[SamplingAhead] = deque()

    def __len__(self) -> int:
        return len(self._samplings)

    def begin(self, policy: LivePolicy, begun: Begun, number: int, step: int) -> None:
        self._samplings.append(SamplingAhead(number, step, policy, begun))

    def take(self, number: int) -> tuple[Groups, int | None] | None:
        """(answers, the step of their weights) of sampling `number`, when they are all there; None where it was not
        begun. Those before it, which a source has passed over, are forgotten."""
        while self._samplings:
            sampling = self._samplings.popleft()
            if sampling.number is None or sampling.number == number:
                return sampling.answers(), sampling.step
        return None

    def state(self) -> list[dict[str, Any]]:
        """What a checkpoint keeps: these answers are of weights that a resumed run no longer has. Waits for them."""
        return [
            {
                "number": each.number,
                "step": each.step,
                "groups": [[_packed(rollout) for rollout in group] for group in each.answers()],
            }
            for each in self._samplings
        ]

    def restore(self, state: Sequence[Any] | None) -> None:
        """Older checkpoints have the groups of one sampling alone, or None."""
        samplings = state or []
        if samplings and not isinstance(samplings[0], Mapping):
            samplings = [{"number": None, "step": None, "groups": samplings}]
        self._samplings = deque(
            SamplingAhead(
                each["number"],
                each["step"],
                groups=[[_unpacked(rollout) for rollout in group] for group in each["groups"]],
            )
            for each in samplings
        )


def _packed(rollout: Rollout) -> dict[str, Any]:
    of_tokens = {"ids": torch.from_numpy(rollout.ids.copy()), "log_probs": torch.from_numpy(rollout.log_probs.copy())}
    if rollout.routes is not None:
        of_tokens["routes"] = torch.from_numpy(rollout.routes.copy())
    return {"row": rollout.row, "n": rollout.n, "text": rollout.text, "finished": rollout.finished, **of_tokens}


def _unpacked(packed: Mapping[str, Any]) -> Rollout:
    names = [name for name in ("ids", "log_probs", "routes") if name in packed]
    of_tokens: dict[str, np.ndarray] = {name: packed[name].numpy() for name in names}
    return Rollout(**{**packed, **of_tokens})
