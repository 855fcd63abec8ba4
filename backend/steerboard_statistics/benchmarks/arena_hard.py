"""Arena-Hard's win rates against a baseline (Li et al., arXiv 2406.11939; lmarena/arena-hard-auto, show_result.py).

A battle is one verdict of one order; `A>>B` counts three times and a tie is half a win for both. Ratings are the
Bradley-Terry maximum likelihood, an unpenalised logistic regression on the scale 400 to the base 10, so a model's win
rate is 1 / (1 + 10 ** ((R_baseline - R_model) / 400)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SCALE = 400.0
STRONG = 3
_LOG_BASE = float(np.log(10.0))
# The original draws 100, with which the ends of the interval move by about a point from seed to seed.
_BOOTSTRAPS = 1000
_SEED = 42
# Beyond this a win rate is 0 or 1 to all digits that a report has; without a bound, a model that won every battle has
# no maximum likelihood.
_FARTHEST = 40.0

_LABELS = {"A>>B": (1.0, STRONG), "A>B": (1.0, 1), "A=B": (0.5, 1), "A<B": (0.0, 1), "A<<B": (0.0, STRONG)}
_MIRRORED = {"B>>A": "A<<B", "B>A": "A<B", "B=A": "A=B", "B<A": "A>B", "B<<A": "A>>B"}


@dataclass(frozen=True, slots=True)
class Battle:
    """`value`: 1, 0.5 or 0, the share of the win that is a's; `weight`: how often it counts."""

    a: str
    b: str
    value: float
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ArenaRate:
    """Percent. `low` and `high`: 2.5 and 97.5 percentiles of the bootstraps; `n`: battles, however much they count."""

    model: str
    win_rate: float
    low: float | None
    high: float | None
    rating: float
    n: int


def verdict(label: str | None) -> tuple[float, int] | None:
    """(value for A, weight) of `A>>B`, `A>B`, `A=B`, `B>A`, `B>>A` and their mirror images; None for anything else."""
    text = (label or "").strip().removeprefix("[[").removesuffix("]]")
    return _LABELS.get(_MIRRORED.get(text, text))


def win_rates(
    battles: Sequence[Battle], baseline: str, *, bootstraps: int = _BOOTSTRAPS, seed: int = _SEED
) -> list[ArenaRate]:
    """Every model against `baseline`, best first; the baseline itself has 50.

    The bootstrap draws battles, a strong one being three, as the original does: it takes the orders of a question for
    independent, so its interval is on the narrow side. Models that no chain of battles joins to the baseline are left
    out, and so are battles of a model with itself; an interval is over the draws that have a battle of the model.
    Raises `ValueError` where the baseline has no battle.
    """
    battles = [battle for battle in battles if battle.a != battle.b]
    models = _joined(battles, baseline)
    if len(models) < 2:
        raise ValueError(f"{baseline} has no battle")
    place = {model: index for index, model in enumerate(models)}
    kinds: Counter[tuple[int, int, float]] = Counter()
    fought: Counter[str] = Counter()
    for battle in battles:
        if battle.a in place and battle.b in place:
            kinds[place[battle.a], place[battle.b], battle.value] += battle.weight
            fought.update((battle.a, battle.b))
    pairs = np.array([(a, b) for a, b, _ in kinds])
    values = np.array([value for _, _, value in kinds])
    counts = np.array(list(kinds.values()), dtype=float)
    ratings = _ratings(pairs, values, counts, len(models))
    random = np.random.default_rng(seed)
    draws = random.multinomial(int(counts.sum()), counts / counts.sum(), size=bootstraps)
    drawn = np.array([_win_rates(_ratings(pairs, values, draw, len(models))) for draw in draws])
    present = np.array([_present(pairs, draw, len(models)) for draw in draws], dtype=bool)
    rates = _win_rates(ratings)
    found = []
    for index, model in enumerate(models):
        of_model = drawn[present[:, 0] & present[:, index], index] if bootstraps and index else np.empty(0)
        low, high = np.percentile(of_model, [2.5, 97.5]) if len(of_model) else (None, None)
        found.append(
            ArenaRate(
                model=model,
                win_rate=float(rates[index]),
                low=None if low is None else float(low),
                high=None if high is None else float(high),
                rating=1000 + float(ratings[index]) * SCALE / _LOG_BASE,
                n=fought[model],
            )
        )
    return sorted(found, key=lambda one: (-one.win_rate, one.model))


def _joined(battles: Sequence[Battle], baseline: str) -> list[str]:
    """The baseline, then the models that battles connect to it, in alphabetical order."""
    rivals: dict[str, set[str]] = {}
    for battle in battles:
        rivals.setdefault(battle.a, set()).add(battle.b)
        rivals.setdefault(battle.b, set()).add(battle.a)
    found, open_ = {baseline}, [baseline]
    while open_:
        new = rivals.get(open_.pop(), set()) - found
        found |= new
        open_ += new
    return [baseline, *sorted(found - {baseline})]


def _present(pairs: NDArray[np.int64], counts: NDArray[np.int64], models: int) -> NDArray[np.bool_]:
    """Which models have a battle among those that count."""
    found: NDArray[np.bool_] = np.bincount(pairs[counts > 0].ravel(), minlength=models) > 0
    return found


def _win_rates(ratings: NDArray[np.float64]) -> NDArray[np.float64]:
    """In percent against the first."""
    return np.asarray(100 / (1 + np.exp(ratings[0] - ratings)))


def _ratings(
    pairs: NDArray[np.int64], values: NDArray[np.float64], counts: NDArray[np.float64], models: int
) -> NDArray[np.float64]:
    """Natural logarithms of the strengths, the first 0: Newton's method on the log-likelihood, which is concave."""
    a, b = pairs[:, 0], pairs[:, 1]
    ratings = np.zeros(models)
    for _ in range(100):
        p = 1 / (1 + np.exp(ratings[b] - ratings[a]))
        slope = counts * (values - p)
        curve = counts * p * (1 - p)
        gradient = np.bincount(a, slope, models) - np.bincount(b, slope, models)
        hessian = np.zeros((models, models))
        np.add.at(hessian, (a, a), curve)
        np.add.at(hessian, (b, b), curve)
        np.add.at(hessian, (a, b), -curve)
        np.add.at(hessian, (b, a), -curve)
        # The least-squares step leaves a model without a drawn battle where it is.
        step = np.linalg.lstsq(hessian[1:, 1:], gradient[1:], rcond=None)[0]
        ratings[1:] = np.clip(ratings[1:] + np.clip(step, -2, 2), -_FARTHEST, _FARTHEST)
        if np.abs(gradient[1:]).max() < 1e-9 * max(1.0, counts.sum()):
            break
    return ratings
