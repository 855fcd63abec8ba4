"""Held-out figures that training measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.proportions import proportion_interval

ACCURACY = "held_out_accuracy"


class Interval(Protocol):
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def measured(summary: Mapping[str, Any], figure: str) -> Estimate | None:
    """An accuracy has an interval, since the number of its pairs is known."""
    value = summary.get(figure)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    pairs = summary.get("pairs")
    if figure == ACCURACY and isinstance(pairs, int) and pairs > 0:
        return proportion_interval(value * pairs, pairs)
    return Estimate(value=float(value), n=0)


def overlap(first: Interval, other: Interval) -> bool | None:
    """Returns None where one of them has no interval."""
    if first.low is None or first.high is None or other.low is None or other.high is None:
        return None
    return first.low <= other.high and other.low <= first.high
