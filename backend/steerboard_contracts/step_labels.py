"""The labels of the steps of an answer, as TRL's stepwise supervision has them."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

# From this label, or probability, on a step counts as right.
RIGHT = 0.5


def _label(value: Any) -> bool | float:
    if isinstance(value, bool):
        return value
    if not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise ValueError("is neither true nor false, nor a number from 0 to 1")
    return float(value) + 0.0  # no negative zero, which JSONB does not know


def _alike(labels: list[bool | float]) -> list[bool | float]:
    """Booleans where none of them is a fraction, numbers where one is: a row is written in one way only."""
    if all(label in (0, 1) for label in labels):
        return [bool(label) for label in labels]
    return [float(label) for label in labels]


StepLabel = Annotated[bool | float, BeforeValidator(_label)]
StepLabels = Annotated[list[StepLabel], AfterValidator(_alike)]
"""True for a right step, false for a wrong one; or how likely it is right, such as the share of continuations that end
in the right answer (arXiv 2312.08935)."""
