"""A frozen model apart, as the processes that train read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from steerboard_workers.alignment.examples import Example
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.roles.placed_unit import PlacedUnit

Values = NDArray[np.float32]
# Passes that a unit does for one question: what they give goes to the cache, and is shown, from time to time.
_AT_ONCE = 8


@dataclass(frozen=True)
class PlacedModel:
    """`Elsewhere` of one model, of which there are so many `copies`: one with each of the `units`, which only the first
    process knows."""

    name: str
    copies: int
    units: Sequence[PlacedUnit]
    sharing: Strategy

    def read(self, parts: Sequence[list[Example]], labels: bool) -> Iterator[Values]:
        """The values of each part, in order, on every process that trains; only the first one asks."""
        for start in range(0, len(parts), self.copies * _AT_ONCE):
            turn = list(parts[start : start + self.copies * _AT_ONCE])
            shares = [(unit, turn[at :: self.copies]) for at, unit in enumerate(self.units)]
            asked = [unit.ask("read", self.name, share, labels) for unit, share in shares]
            gathered: list[Values | None] = [None] * len(turn)
            for at, call in enumerate(asked):
                gathered[at :: self.copies] = call.answer()
            if self.sharing.accelerator.num_processes > 1:
                torch.distributed.broadcast_object_list(gathered, src=0)
            yield from (values for values in gathered if values is not None)
