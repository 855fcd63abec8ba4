"""AlpacaEval's win rates (tatsu-lab/alpaca_eval, metrics/winrate.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class WinRate:
    """Percent; None where there are too few rows. `n` counts rows with a preference, `nulls` those without."""

    win_rate: float | None
    standard_error: float | None
    discrete_win_rate: float | None
    wins: int
    losses: int
    draws: int
    n: int
    nulls: int


def probability(preference: float | None) -> float | None:
    """p = preference - 1, the probability that output_2 (the model's) is better; 0 is a draw, null and NaN are None.

    Raises `ValueError` for a preference that is neither 0 nor in [1, 2].
    """
    if preference is None or math.isnan(preference):
        return None
    if preference == 0:
        return 0.5
    if not 1 <= preference <= 2:
        raise ValueError(f"a preference is 0 or between 1 and 2, not {preference:g}")
    return preference - 1


def summary(preferences: Sequence[float | None]) -> WinRate:
    """The summary of one model's rows: win rate 100 mean(p), standard error 100 sd(p, ddof 1) / sqrt(n).

    The discrete win rate counts p > 1/2 as 1 and p = 1/2 as 1/2. Raises `ValueError` like `probability`.
    """
    return of_probabilities([probability(preference) for preference in preferences])


def of_probabilities(probabilities: Sequence[float | None]) -> WinRate:
    """The same from p itself, where None is a row without a preference."""
    p = np.array([value for value in probabilities if value is not None], dtype=float)
    n = len(p)
    wins, losses = int((p > 0.5).sum()), int((p < 0.5).sum())
    draws = n - wins - losses
    return WinRate(
        win_rate=100 * float(p.mean()) if n else None,
        standard_error=100 * float(p.std(ddof=1)) / math.sqrt(n) if n > 1 else None,
        discrete_win_rate=100 * (wins + draws / 2) / n if n else None,
        wins=wins,
        losses=losses,
        draws=draws,
        n=n,
        nulls=len(probabilities) - n,
    )
