"""Which entrants to compare next: pairs whose difference in strength is least certain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steerboard_statistics.bootstrap import Floats
from steerboard_statistics.bradley_terry import log_strengths

# Wins of each entrant over each other one, before any vote: all strengths are finite then.
_PRIOR_WINS = 0.5


def difference_variances(wins: Floats) -> Floats:
    """Variance of the difference of two log strengths of the Bradley-Terry model, for each pair.

    wins (entrants, entrants) of row over column, ties 1/2; result (entrants, entrants), symmetric, 0 on the diagonal.
    It is (e_i - e_j)' I^-1 (e_i - e_j) with I the information of the votes, to which each pair has one tie added.
    """
    m = len(wins)
    off = 1 - np.eye(m)
    padded = (np.asarray(wins, dtype=np.float64) + _PRIOR_WINS) * off
    logs = log_strengths(padded[None])[0]
    chance = 1 / (1 + np.exp(logs[None, :] - logs[:, None]))
    weight = (padded + padded.T) * chance * (1 - chance) * off
    information = np.diag(weight.sum(axis=1)) - weight
    # The likelihood does not change when all logs move together: 1/m makes the matrix regular.
    inverse = np.linalg.inv(information + 1 / m)
    spread = np.diag(inverse)
    return np.asarray((spread[:, None] + spread[None, :] - 2 * inverse) * off)


def pair_chances(wins: Floats) -> Floats:
    """Chance of each unordered pair to be drawn, in proportion to the variance of its difference.

    wins as above; result (entrants, entrants) with its mass above the diagonal, which sums to 1.
    """
    above = np.triu(difference_variances(wins), k=1)
    return np.asarray(above / above.sum())


def joining_chances(chances: Floats, drawn: Sequence[int]) -> Floats:
    """Chance of each entrant to be compared with those `drawn`, in proportion to the chances of its pairs with them.

    chances (entrants, entrants) of `pair_chances`; result (entrants,), 0 for those that are drawn.
    """
    either = chances + chances.T
    joining = either[:, drawn].sum(axis=1)
    joining[drawn] = 0
    return np.asarray(joining / joining.sum())
