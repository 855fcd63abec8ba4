"""How a series of figures rises."""

from __future__ import annotations

import math
from collections.abc import Sequence


def line_of(values: Sequence[float]) -> tuple[float, float]:
    """(slope, its standard error) of the least-squares line through at least three values at equal distances. The error
    is sqrt(RSS / (n - 2) / sum (x - mean x)^2)."""
    n = len(values)
    middle, mean = (n - 1) / 2, sum(values) / n
    spread = sum((x - middle) ** 2 for x in range(n))
    slope = sum((x - middle) * (value - mean) for x, value in enumerate(values)) / spread
    residuals = sum((value - mean - slope * (x - middle)) ** 2 for x, value in enumerate(values))
    return slope, math.sqrt(residuals / (n - 2) / spread)
