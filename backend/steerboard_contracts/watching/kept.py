"""Which weights a training run kept, of those that it evaluated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steerboard_contracts.wording import counted


@dataclass(frozen=True)
class Kept:
    """The weights of `step`, at a held-out loss of `loss`: the lowest of so many `evaluations`. Training ended with
    `last_loss` at `last_step`."""

    step: int
    loss: float
    evaluations: int
    last_step: int
    last_loss: float

    def in_words(self) -> str:
        words = f"best of {counted(self.evaluations, 'evaluation')}: step {self.step:,} of {self.last_step:,}, "
        words += f"held-out loss {self.loss:.4g}"
        return words + (
            "; the last was the best" if self.step == self.last_step else f"; the last was {self.last_loss:.4g}"
        )


def kept_best(losses: Sequence[tuple[int, float]]) -> Kept | None:
    """`losses`: step and held-out loss of each evaluation, in order. The first of equal ones; None where none is
    finite."""
    known = [point for point in losses if math.isfinite(point[1])]
    if not known:
        return None
    (step, loss), (last_step, last_loss) = min(known, key=lambda point: point[1]), losses[-1]
    return Kept(step, loss, len(losses), last_step, last_loss)
