"""Shares of agreement with 95% intervals over items: two annotators of one item are no independent evidence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.proportions import clustered_win_rate_interval


def share_of_pairs(submissions: Iterable[tuple[Hashable, Sequence[float]]]) -> Estimate:
    """The mean of 1, 1/2 or 0 for each pair of answers; each submission comes with the item that it is on."""
    points = [(item, point) for item, given in submissions for point in given]
    if not points:
        return Estimate(value=None, n=0)
    return clustered_win_rate_interval([point for _, point in points], [item for item, _ in points])


def fields(name: str, share: Estimate) -> dict[str, float | None]:
    """The share as `NAME`, and the ends of its interval as `NAME_low` and `NAME_high`."""
    return {name: share.value, f"{name}_low": share.low, f"{name}_high": share.high}
