"""Entrants with too few verdicts of a judge that have a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steerboard.evaluation.report.data import Verdicts
from steerboard_statistics.validity import assess


def invalid_entrants(verdicts: Verdicts, threshold: float) -> dict[int, str]:
    """{entrant: why its figures are invalid}, by the share of its own verdicts that have no value.

    A verdict on a pair is about both, so the worst goes first, and the others are assessed by their verdicts without
    it: an entrant that no judge can read does not take its rivals along.
    """
    reasons: dict[int, str] = {}
    while True:
        worst, rate, reason = -1, 0.0, None
        for column in verdicts.entrants():
            own_verdicts = (verdicts.a == column) | (verdicts.b == column)
            usable = int((own_verdicts & verdicts.ok).sum())
            own = assess(usable, {"without a value": int(own_verdicts.sum()) - usable}, threshold, what="verdicts")
            # The later of equals: the baseline comes first.
            if own.reason is not None and own.rate >= rate:
                worst, rate, reason = int(column), own.rate, own.reason
        if reason is None:
            return reasons
        reasons[worst] = reason
        verdicts = without(verdicts, [worst])


def without(verdicts: Verdicts, entrants: Sequence[int]) -> Verdicts:
    """The verdicts that are about none of these entrants."""
    return verdicts.take(~np.isin(verdicts.a, entrants) & ~np.isin(verdicts.b, entrants))
