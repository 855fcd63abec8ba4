"""Weights that grow with the reward."""

from __future__ import annotations

import math

# exp() of more is too large a number.
HIGHEST_EXPONENT = 700.0


def exponential_weight(z: float, beta: float, max_weight: float | None) -> float:
    """exp(z / beta), at most `max_weight`: Eq. 5 of arXiv 2308.12050. Large z never overflows."""
    limit = math.inf if max_weight is None else max_weight
    return min(math.exp(min(z / beta, HIGHEST_EXPONENT)), limit)
