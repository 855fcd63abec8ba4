"""What happens to rewards before they are compared. Numbers without gradient, in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steerboard_workers.alignment.policy_gradient.advantages import EPS, Floats


def overlong(lengths: ArrayLike, longest: int, margin: int) -> Floats:
    """Eq. 13 of arXiv 2503.14476, for answers of `lengths` (n,) tokens: 0 up to `longest` - `margin` tokens, from there
    falling linearly to -1 at `longest`."""
    if not 0 < margin < longest:
        raise ValueError(f"the margin is {margin} tokens of {longest}")
    over = (np.asarray(lengths, dtype=np.float64) - (longest - margin)) / margin
    penalty: Floats = -over.clip(0.0, 1.0)
    return penalty


@dataclass
class RunningMoments:
    """The moments of all values so far: how many, their mean, and the sum of squared distances from it, by Chan, Golub
    and LeVeque (1979). NaN counts for nothing."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, values: Floats) -> None:
        """values: of any shape."""
        known = values[~np.isnan(values)]
        if not len(known):
            return
        mean, total = float(known.mean()), self.count + len(known)
        away = mean - self.mean
        self.squares += float(((known - mean) ** 2).sum()) + away**2 * self.count * len(known) / total
        self.mean += away * len(known) / total
        self.count = total

    @property
    def divisor(self) -> float:
        """The unbiased standard deviation, and eps; 1 as long as nothing has differed."""
        if self.count < 2 or self.squares == 0:
            return 1.0
        return float(np.sqrt(self.squares / (self.count - 1))) + EPS

    def normalised(self, values: Floats) -> Floats:
        """(values - mean) / `divisor`, of any shape."""
        scaled: Floats = (values - self.mean) / self.divisor
        return scaled
