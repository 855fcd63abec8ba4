"""Two entrants on the same items: wins and ties, Wilcoxon's signed-rank test, Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike

from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import PairRow
from steerboard_statistics.bootstrap import Floats
from steerboard_statistics.proportions import win_rate_interval
from steerboard_statistics.ranks import without_noise

SIGNIFICANT = 0.05
# With fewer not even a clean sweep reaches 5% on both sides: 2 / 2^5 = 0.0625.
MIN_TEST_ITEMS = 6
_EXACT = 13


def wilcoxon_p(differences: ArrayLike) -> float | None:
    """Two-sided p of Wilcoxon's signed-rank test that the differences (items,) are symmetric around 0.

    Ties (differences of 0) are left out, as Wilcoxon did: they favour no one. Equal sizes share their average rank.
    Exact up to 13 that are not ties, and up to 50 items when no sizes are equal; else the normal approximation with the
    variance corrected for equal sizes and no continuity correction, as scipy has it: where all sizes are equal, as of
    verdicts of 1 and 0, a p below 5% comes up in 6 to 7% of cases at 14 to 16 items without ties. None below 6 items; 1
    when every item is a tie.
    """
    data = without_noise(differences)
    data = data[np.isfinite(data)]
    if data.size < MIN_TEST_ITEMS:
        return None
    untied = data[data != 0]
    if untied.size <= _EXACT:
        return _exact_p(untied)
    return min(float(scipy.stats.wilcoxon(data, zero_method="wilcox", correction=False, method="auto").pvalue), 1.0)


def rank_direction(differences: ArrayLike) -> int:
    """1 where the positive differences (items,) have the larger sum of Wilcoxon's ranks, -1 the negative ones, or 0.

    It is whom the test speaks for: a few large differences may put the mean on the other side.
    """
    data = without_noise(differences)
    data = data[np.isfinite(data) & (data != 0)]
    return int(np.sign((np.sign(data) * scipy.stats.rankdata(np.abs(data))).sum()))


def _exact_p(differences: Floats) -> float:
    """The same over all 2^n signs of the differences, none of them 0, their sizes tied or not.

    scipy enumerates the signs one by one, which takes a second for 13.
    """
    doubled = np.rint(2 * scipy.stats.rankdata(np.abs(differences))).astype(np.int64)
    total = int(doubled.sum())
    # chances[w]: of a doubled sum of positive ranks of w, when each sign is a coin's.
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: total + 1 - rank]
        chances = (chances + moved) / 2
    positive = int(doubled[differences > 0].sum())
    smaller = min(positive, total - positive)
    return min(2 * float(chances[: smaller + 1].sum()), 1.0)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (1979) over all that have a p: adjusted p in the order given.

    scipy corrects for false discoveries only, and statsmodels needs pandas.
    """
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for done, (p, place) in enumerate(known):
        highest = max(highest, min(p * (len(known) - done), 1.0))
        adjusted[place] = highest
    return adjusted


def pair_rows(
    pairs: Sequence[tuple[str, str]], signs: Floats, differences: Floats, estimates: Sequence[Estimate]
) -> list[PairRow]:
    """The table of pairs with Holm over all of it.

    signs (items, pairs): 1 where a wins, 0 tie, -1 where it loses, NaN where the item does not compare the two;
    differences (items, pairs): what the test is on; estimates: of the mean differences.
    """
    ps = [wilcoxon_p(column) for column in differences.T]
    rows = []
    for place, ((a, b), p, adjusted) in enumerate(zip(pairs, ps, holm(ps), strict=True)):
        wins, ties, losses = (int((signs[:, place] == sign).sum()) for sign in (1, 0, -1))
        rows.append(
            PairRow(
                a=a,
                b=b,
                wins=wins,
                ties=ties,
                losses=losses,
                win_rate=win_rate_interval(wins, ties, losses),
                difference=estimates[place],
                p=p,
                p_holm=adjusted,
                significant=_significant(adjusted, differences[:, place], estimates[place]),
            )
        )
    return rows


def _significant(p: float | None, differences: Floats, mean: Estimate) -> bool:
    """A small p is not evidence for whom the mean favours where the ranks favour the other."""
    if p is None or p >= SIGNIFICANT or mean.value is None:
        return False
    return rank_direction(differences) == int(np.sign(mean.value)) != 0


def win_rate(ours: Sequence[float], others: Sequence[float]) -> float:
    """Share of items where ours is higher; an equal value counts 1/2."""
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(others, dtype=np.float64)
    return float(((a > b) + 0.5 * (a == b)).mean())
