"""Which samples an optimiser step sees: a function of (seed, step) alone, so that resuming needs no state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Order:
    """`epochs` passes over n samples, each in an order of its own, cut into steps of `batch`.

    Every sample comes exactly once an epoch; nothing is repeated to fill a step, so the last one may be smaller.
    """

    n: int
    batch: int
    epochs: float
    seed: int

    @property
    def samples(self) -> int:
        return max(1, round(self.n * self.epochs))

    @property
    def steps(self) -> int:
        return math.ceil(self.samples / self.batch)

    def step(self, number: int) -> list[int]:
        """Indices of step `number`, counted from 0."""
        places = range(number * self.batch, min((number + 1) * self.batch, self.samples))
        return [int(_permutation(self.n, self.seed, at // self.n)[at % self.n]) for at in places]


@lru_cache(maxsize=2)
def _permutation(n: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Counter-based: the epoch's order does not depend on the epochs before it."""
    return np.random.Generator(np.random.Philox(key=[seed % 2**64, epoch])).permutation(n)


def cosine_with_warmup(step: int, total: int, warmup_ratio: float, minimum: float) -> float:
    """Factor on the peak learning rate at step 0 <= step < total: linear up, then a half cosine down to `minimum`."""
    warmup = math.ceil(total * warmup_ratio)
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)
    return minimum + (1 - minimum) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
