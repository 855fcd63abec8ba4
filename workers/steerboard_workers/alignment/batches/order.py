"""Which samples an optimiser step sees: a function of (seed, step) alone, so that resuming needs no state."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Order:
    """`epochs` passes over n samples, each in an order of its own, cut into steps of `batch`.

    Every sample comes exactly once an epoch; nothing is repeated to fill a step, so the last one may be smaller.
    `together`: samples that follow each other in every epoch, where some do.
    """

    n: int
    batch: int
    epochs: float
    seed: int
    together: Together | None = None

    @property
    def samples(self) -> int:
        return max(1, round(self.n * self.epochs))

    @property
    def steps(self) -> int:
        return math.ceil(self.samples / self.batch)

    def step(self, number: int) -> list[int]:
        """Indices of step `number`, counted from 0."""
        places = range(number * self.batch, min((number + 1) * self.batch, self.samples))
        return [int(self._epoch(at // self.n)[at % self.n]) for at in places]

    def first(self, steps: int) -> list[int]:
        """Indices of the samples that the first `steps` steps draw, each once: all in their own order, or those of a
        part of the first epoch as they are drawn."""
        drawn = min(steps * self.batch, self.samples)
        return list(range(self.n)) if drawn >= self.n else [int(at) for at in self._epoch(0)[:drawn]]

    def _epoch(self, epoch: int) -> NDArray[np.int64]:
        if self.together is None:
            return _permutation(self.n, self.seed, epoch)
        return _in_sets(self.together, self.seed, epoch)


class Together:
    """Samples in sets: `of` (n,) is each one's set, numbered from 0 in the order of their first samples."""

    def __init__(self, of: NDArray[np.int64]) -> None:
        self.of = of
        self.sets = int(of.max()) + 1

    @classmethod
    def by(cls, keys: Iterable[Hashable]) -> Together | None:
        """Samples of equal keys are a set. None: each is alone."""
        numbers: dict[Hashable, int] = {}
        of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        return cls(of) if len(numbers) < len(of) else None


@lru_cache(maxsize=2)
def _in_sets(together: Together, seed: int, epoch: int) -> NDArray[np.int64]:
    turns = np.empty(together.sets, dtype=np.int64)
    turns[_permutation(together.sets, seed, epoch)] = np.arange(together.sets)
    return np.argsort(turns[together.of], kind="stable")


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
