"""Whether a figure may be reported: unusable input above a threshold makes it invalid, and not merely lower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UNUSABLE_THRESHOLD = 0.05


@dataclass(frozen=True, slots=True)
class Validity:
    """`rate`: share of the input that cannot be used, from 0 to 1. `reason`: why the figure is invalid, None if it is
    valid."""

    rate: float
    reason: str | None

    @property
    def valid(self) -> bool:
        return self.reason is None


def assess(
    usable: int, unusable: Mapping[str, int], threshold: float = UNUSABLE_THRESHOLD, *, what: str = "judgments"
) -> Validity:
    """The validity from counts of what can be used and, by reason, of what cannot. Nothing usable at all is never
    valid."""
    lost = sum(unusable.values())
    total = usable + lost
    if not total:
        return Validity(0.0, f"there are no {what}")
    rate = lost / total
    if usable and rate <= threshold:
        return Validity(rate, None)
    named = ", ".join(f"{count:,} {name}" for name, count in unusable.items() if count)
    return Validity(rate, f"{lost:,} of {total:,} {what} cannot be used ({named}): more than {100 * threshold:.3g}%")
