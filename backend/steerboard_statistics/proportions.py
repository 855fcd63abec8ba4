"""Score intervals of shares: Wilson's for wins and losses, Tango's where there are ties as well.

statsmodels has Wilson's interval, but needs pandas and half a second to import; scipy's takes whole counts only.
Neither has Tango's.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import scipy

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

    found = ahead / n
    low = scipy.optimize.brentq(excess, -1, found - _APART) if found - _APART > -1 else -1.0
    high = scipy.optimize.brentq(excess, found + _APART, 1) if found + _APART < 1 else 1.0
    return Estimate(value=(wins + ties / 2) / n, low=(1 + low) / 2, high=(1 + high) / 2, n=round(n))
