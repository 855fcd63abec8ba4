"""Arena-Hard's win rates against a baseline (Li et al., arXiv 2406.11939; lmarena/arena-hard-auto, show_result.py).

A battle is one verdict of one order; `A>>B` counts three times and a tie is half a win for both. Ratings are the
Bradley-Terry maximum likelihood, an unpenalised logistic regression on the scale 400 to the base 10, so a model's win
rate is 1 / (1 + 10 ** ((R_baseline - R_model) / 400)). A model has a finite maximum only if wins lead from it to the
baseline and from the baseline to it, a tie being a win of both; the others are at one end, or nowhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from steerboard_statistics.bootstrap import MIN_ITEMS, tail_share

SCALE = 400.0
STRONG = 3
_LOG_BASE = float(np.log(10.0))
# The original draws 100, with which the ends of the interval move by about a point from seed to seed.
_BOOTSTRAPS = 1000
_SEED = 42
# In percentage points. Battles that all ended alike have the same win rate in each draw, except for rounding.
_ALIKE = 1e-6

_LABELS = {"A>>B": (1.0, STRONG), "A>B": (1.0, 1), "A=B": (0.5, 1), "A<B": (0.0, 1), "A<<B": (0.0, STRONG)}
_MIRRORED = {"B>>A": "A<<B", "B>A": "A<B", "B=A": "A=B", "B<A": "A>B", "B<<A": "A>>B"}


@dataclass(frozen=True, slots=True)
class Battle:
    """`value`: 1, 0.5 or 0, the share of the win that is a's; `weight`: how often it counts. `question`: battles with
    the same are of one prompt; None: the battle is the only one of its prompt."""

    a: str
    b: str
    value: float
    weight: int = 1
    question: Hashable = None


Question = tuple[tuple[str, str, float, int], ...]
"""(a, b, value, weight) of each of its battles"""


@dataclass(frozen=True, slots=True)
class ArenaRate:
    """Percent. `low` and `high`: the 95% interval of bootstraps of questions, None below 8 questions and where the
    bootstraps are all the same, as of battles that all ended alike; `rating`: None where it is not finite, and the win
    rate then 0 or 100; `n`: battles, however much they count."""

    model: str
    win_rate: float
    low: float | None
    high: float | None
    rating: float | None
    n: int


def verdict(label: str | None) -> tuple[float, int] | None:
    """(value for A, weight) of `A>>B`, `A>B`, `A=B`, `B>A`, `B>>A` and their mirror images; None for anything else."""
    text = (label or "").strip().removeprefix("[[").removesuffix("]]")
    return _LABELS.get(_MIRRORED.get(text, text))


def win_rates(
    battles: Sequence[Battle], baseline: str, *, bootstraps: int = _BOOTSTRAPS, seed: int = _SEED
) -> list[ArenaRate]:
    """Every model against `baseline`, best first; the baseline itself has 50.

    The bootstrap draws questions, each with all of its battles, where the original draws battles, a strong one being
    three: the battles of a question are no independent evidence, nor are the three. Models that no chain of wins or of
    losses joins to the baseline are left out, and so are battles of a model with itself; an interval is over the draws
    that place the model. Raises `ValueError` where the baseline has no battle.
    """
    fights = [battle for battle in battles if battle.a != battle.b]
    fought = Counter(name for battle in fights for name in (battle.a, battle.b))
    if baseline not in fought:
        raise ValueError(f"{baseline} has no battle")
    models = [baseline, *sorted(fought.keys() - {baseline})]
    place = {model: index for index, model in enumerate(models)}
    kinds = sorted({_kind(battle) for battle in fights})
    pairs = np.array([(place[a], place[b]) for a, b, _ in kinds])
    values = np.array([value for _, _, value in kinds])
    grouped = _by_question(fights)
    alike = Counter(grouped)
    contents, counts = _contents(sorted(alike), kinds), np.array([alike[question] for question in sorted(alike)])
    ratings = _ratings(pairs, values, counts @ contents, len(models))
    rates = _win_rates(ratings)
    draws = np.random.default_rng(seed).multinomial(len(grouped), counts / len(grouped), size=bootstraps)
    drawn = np.array([_win_rates(_ratings(pairs, values, draw @ contents, len(models))) for draw in draws])
    questions = Counter(name for question in grouped for name in {name for a, b, *_ in question for name in (a, b)})
    placed = []
    for index, model in enumerate(models):
        if np.isnan(ratings[index]):
            continue
        low, high = _ends(drawn[:, index], questions[model]) if bootstraps and index else (None, None)
        placed.append(
            ArenaRate(
                model=model,
                win_rate=float(rates[index]),
                low=low,
                high=high,
                rating=1000 + float(ratings[index]) * SCALE / _LOG_BASE if np.isfinite(ratings[index]) else None,
                n=fought[model],
            )
        )
    return sorted(placed, key=lambda rate: (-rate.win_rate, rate.model))


def _kind(battle: Battle) -> tuple[str, str, float]:
    return battle.a, battle.b, battle.value


def _by_question(battles: Sequence[Battle]) -> list[Question]:
    """The battles of each question, sorted, so that two that went alike are equal."""
    of_question: dict[Hashable, list[tuple[str, str, float, int]]] = defaultdict(list)
    for number, battle in enumerate(battles):
        key = (number,) if battle.question is None else (None, battle.question)
        of_question[key].append((*_kind(battle), battle.weight))
    return [tuple(sorted(fought)) for fought in of_question.values()]


def _contents(questions: Sequence[Question], kinds: Sequence[tuple[str, str, float]]) -> NDArray[np.float64]:
    """(questions, kinds): what battles of each kind weigh on each question."""
    place = {kind: index for index, kind in enumerate(kinds)}
    weights = np.zeros((len(questions), len(kinds)))
    for row, battles in enumerate(questions):
        for a, b, value, weight in battles:
            weights[row, place[a, b, value]] += weight
    return weights


def _ends(drawn: NDArray[np.float64], questions: int) -> tuple[float, float] | tuple[None, None]:
    placed = drawn[np.isfinite(drawn)]
    if not len(placed) or questions < MIN_ITEMS:
        return None, None
    tail = tail_share(questions)
    low, high = np.quantile(placed, [tail, 1 - tail])
    return (float(low), float(high)) if high - low > _ALIKE else (None, None)


def _win_rates(ratings: NDArray[np.float64]) -> NDArray[np.float64]:
    """The win rates in percent against the first."""
    with np.errstate(over="ignore"):
        return np.asarray(100 / (1 + np.exp(ratings[0] - ratings)))


def _ratings(
    pairs: NDArray[np.int64], values: NDArray[np.float64], counts: NDArray[np.float64], models: int
) -> NDArray[np.float64]:
    """Natural logarithms of the strengths, the first 0: infinite for a model that those joined to the first by wins
    both ways have never beaten, or that has never beaten any of them; NaN for one whom no chain of either joins."""
    fought = counts > 0
    a, b, value = pairs[fought, 0], pairs[fought, 1], values[fought]
    winners = np.concatenate([a[value > 0], b[value < 1]])
    losers = np.concatenate([b[value > 0], a[value < 1]])
    below, above = _reached(winners, losers, models), _reached(losers, winners, models)
    ratings = np.full(models, np.nan)
    ratings[above], ratings[below] = np.inf, -np.inf
    members = np.flatnonzero(above & below)
    inside = np.isin(a, members) & np.isin(b, members)
    rows = np.searchsorted(members, a[inside]), np.searchsorted(members, b[inside])
    ratings[members] = _fit(*rows, value[inside], counts[fought][inside], len(members))
    return ratings


def _reached(sources: NDArray[np.int64], targets: NDArray[np.int64], models: int) -> NDArray[np.bool_]:
    """Which models edges lead to from the first, itself included."""
    graph = scipy.sparse.csr_array((np.ones(len(sources)), (sources, targets)), shape=(models, models))
    order = scipy.sparse.csgraph.breadth_first_order(graph, 0, return_predecessors=False)
    reached = np.zeros(models, dtype=bool)
    reached[order] = True
    return reached


def _fit(
    a: NDArray[np.int64], b: NDArray[np.int64], values: NDArray[np.float64], counts: NDArray[np.float64], models: int
) -> NDArray[np.float64]:
    """The maximum of models all of whom have one: Newton's method on the log-likelihood, which is concave."""
    ratings = np.zeros(models)
    for _ in range(100):
        p = 1 / (1 + np.exp(ratings[b] - ratings[a]))
        slope = counts * (values - p)
        curve = counts * p * (1 - p)
        gradient = np.bincount(a, slope, models) - np.bincount(b, slope, models)
        if np.abs(gradient).max() < 1e-9 * max(1.0, counts.sum()):
            break
        hessian = np.zeros((models, models))
        np.add.at(hessian, (a, a), curve)
        np.add.at(hessian, (b, b), curve)
        np.add.at(hessian, (a, b), -curve)
        np.add.at(hessian, (b, a), -curve)
        step = np.linalg.lstsq(hessian[1:, 1:], gradient[1:], rcond=None)[0]
        ratings[1:] += np.clip(step, -2, 2)
    return ratings
