"""How long a run will take, judged by earlier runs: an interval that widens with what they do not show.

The times are taken as log-normal. Two uncertainties add up: the scatter between equal runs, learned from the earlier
ones (Student's t), and how far the earlier runs are from the new one, an error that they share and cannot show.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

COVERAGE = 0.9
# Standard deviations of ln(seconds), chosen by us: between equal runs before any were seen, and the least that many
# agreeing ones can show; for each factor of e in size or work, since time is not proportional to either.
_SCATTER, _LEAST_SCATTER, _PER_FACTOR = 0.25, 0.1, 0.35
# The weight of `_SCATTER`, in runs.
_PRIOR_RUNS = 3
# For texts whose length is unknown, and for models whose size or a device whose kind is.
_UNKNOWN_TEXTS, _UNKNOWN_SIZES, _UNKNOWN_DEVICE = 0.5, 0.7, 0.3
# An interval that reaches further, either way, is of no use.
_WIDEST = math.log(10)


@dataclass(frozen=True)
class ScaledRun:
    """An earlier run of `seconds`, scaled to the new one's work. `factors`: the sum of |ln| of what it was scaled
    by."""

    seconds: float
    factors: float = 0.0
    known_texts: bool = True
    known_sizes: bool = True
    known_device: bool = True

    @property
    def unlike(self) -> float:
        """Standard deviation of ln(seconds) from the differences to the new run."""
        texts = 0.0 if self.known_texts else _UNKNOWN_TEXTS
        device = 0.0 if self.known_device else _UNKNOWN_DEVICE
        sizes = 0.0 if self.known_sizes else _UNKNOWN_SIZES
        return math.hypot(_PER_FACTOR * self.factors, texts, sizes, device)


@dataclass(frozen=True)
class Prediction:
    """Seconds, `COVERAGE` of the times between `low` and `high`. `places`: of the runs that it is based on."""

    low: float
    middle: float
    high: float
    places: list[int]


def predicted(runs: Sequence[ScaledRun]) -> Prediction | None:
    """A prediction by the runs most like the new one; None where they tell less than its order of magnitude."""
    if not runs:
        return None
    nearest = min(run.unlike for run in runs)
    places = [place for place, run in enumerate(runs) if run.unlike <= nearest + _LEAST_SCATTER]
    logs = [math.log(runs[place].seconds) for place in places]
    n = len(logs)
    degrees = _PRIOR_RUNS + n - 1
    shown = statistics.variance(logs) if n > 1 else 0.0
    scatter = max((_PRIOR_RUNS * _SCATTER**2 + (n - 1) * shown) / degrees, _LEAST_SCATTER**2)
    width = float(stats.t.ppf((1 + COVERAGE) / 2, degrees)) * math.sqrt(scatter * (1 + 1 / n) + nearest**2)
    if width > _WIDEST:
        return None
    middle = statistics.median(logs)
    return Prediction(math.exp(middle - width), math.exp(middle), math.exp(middle + width), places)
