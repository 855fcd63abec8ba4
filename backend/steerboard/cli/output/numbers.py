"""Numbers as people read them."""

from __future__ import annotations

# What is left of sums that cancel: a mean of zero is -2.1e-17.
_ROUNDING = 1e-12


def short(value: float, digits: int = 4) -> str:
    """The value in so many digits, `1.2e-05` where it is small; what rounding leaves of zero is 0."""
    return f"{0.0 if abs(value) < _ROUNDING else value:.{digits}g}"
