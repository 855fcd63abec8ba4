"""Score intervals of shares: Wilson's for wins and losses, Tango's where there are ties as well.

statsmodels has Wilson's interval, but needs pandas and half a second to import; scipy's takes whole counts only.
Neither has Tango's.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist

import numpy as np
import scipy
from numpy.typing import ArrayLike

from steerboard_contracts.report.estimate import Estimate

_Z = NormalDist().inv_cdf(0.975)
# The distance from the estimate, on the scale from -1 to 1, at which the search for each end starts. At the estimate
# itself both ends of an interval are a root where no one has lost or won.
_APART = 1e-9


def proportion_interval(successes: float, n: float) -> Estimate:
    """A share with Wilson's 95% score interval (1927), which holds at 0, at 1 and for few.

    A part of a success counts as that part of a success and of a failure: values between 0 and 1 vary no more than
    those, so their interval is on the wide side.
    """
    return win_rate_interval(successes, 0, n - successes)


def win_rate_interval(wins: float, ties: float, losses: float) -> Estimate:
    """(wins + ties / 2) / n with its 95% score interval.

    It is (1 + d) / 2 where d = (wins - losses) / n is a difference of matched proportions, whose score interval is
    Tango's (Statistics in Medicine 17, 1998, 891-908): its ends are the d at which (wins - losses - n d)^2 is z^2 times
    its variance n (2 q + d (1 - d)), q being the most likely share of losses for that d. Without ties it is Wilson's.
    """
    n, ahead = wins + ties + losses, wins - losses
    if n <= 0:
        return Estimate(value=None, n=0)

    def excess(d: float) -> float:
        b, c = (2 * n - ahead) * d - wins - losses, -losses * d * (1 - d)
        q = (math.sqrt(max(b**2 - 8 * n * c, 0.0)) - b) / (4 * n)
        return (ahead - n * d) ** 2 - _Z**2 * n * (2 * q + d * (1 - d))

    rate = ahead / n
    low = scipy.optimize.brentq(excess, -1, rate - _APART) if rate - _APART > -1 else -1.0
    high = scipy.optimize.brentq(excess, rate + _APART, 1) if rate + _APART < 1 else 1.0
    return Estimate(value=(wins + ties / 2) / n, low=(1 + low) / 2, high=(1 + high) / 2, n=round(n))


def clustered_win_rate_interval(points: ArrayLike, items: Sequence[Hashable]) -> Estimate:
    """The mean of points (n,) of 1, 1/2 or 0, of which an item may have several, and its 95% interval over items (n,).

    Points of one item are no independent evidence. The interval is Tango's of fewer points, as Rao and Scott have it
    (Biometrics 48, 1992, 577-585): as many as would vary as the mean over items does, at most one for each, and less by
    Student's t for few items (Korn and Graubard, "Analysis of Health Surveys", 1999, 5.2). Points that are all equal
    count once for each item. `n` counts points. No interval of a single item that has several.
    """
    data = np.asarray(points, dtype=np.float64)
    n = len(data)
    places = {item: place for place, item in enumerate(dict.fromkeys(items))}
    place, count = [places[item] for item in items], len(places)
    if count == n:
        shrink = 1.0
    elif count < 2:
        return Estimate(value=float(data.mean()), n=n)
    else:
        apart = np.bincount(place, weights=data - data.mean())
        single, clustered = data.var() / n, count / (count - 1) * math.fsum(apart**2) / n**2
        effect = max(1.0, clustered / single) if single else n / count
        shrink = effect * (scipy.special.stdtrit(count - 1, 0.975) / _Z) ** 2
    wins, losses = (data > 0.5).sum() / shrink, (data < 0.5).sum() / shrink
    interval = win_rate_interval(wins, n / shrink - wins - losses, losses)
    return interval.model_copy(update={"n": n})
