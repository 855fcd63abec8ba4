"""How often 95% intervals cover the truth, on simulated evaluations of known truth: `make bench-coverage`.

- `means`: means of few items from populations with and without a long tail. The tail of `ceiling` is rare: nine answers
  in ten have full marks, so few items often have none of it, and then there is no interval.
- `pairs`: a model's win rate over questions with several verdicts each, as of two turns, or of two turns against three
  rivals. Verdicts on one question go the same way more often than chance (a correlation of 0.6 behind the verdicts).
- `arena_hard`: win rates against a baseline over questions with a game of each order, where strong verdicts count three
  times.

Prints JSON: each kind -> its population -> items -> `covered` (percent of the intervals), `none` (percent of samples
without one) and `width` (the median). With 2,000 simulations `covered` is good to about a point.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from steerboard_statistics.benchmarks.arena_hard import Battle, win_rates
from steerboard_statistics.bootstrap import mean_interval
from steerboard_statistics.proportions import clustered_win_rate_interval

Floats = NDArray[np.float64]
Interval = tuple[float | None, float | None]

ITEMS = (8, 10, 15, 20, 40)
QUESTIONS = (20, 80)
ARENA_QUESTIONS = (100, 500)
# Shares of the scores 1 to 10 that a judge gives to answers of a good model.
_SCORES = np.arange(1.0, 11.0)
_SHARES = (0.02, 0.03, 0.03, 0.04, 0.05, 0.06, 0.1, 0.2, 0.35, 0.12)
_CORRELATION = 0.6
_TIE, _STRONG = 0.3, 1.3
_MANY = 400_000
# Fewer than for a leaderboard, so that the simulation takes minutes; the ends are somewhat less exact.
_BOOTSTRAPS = 300


@dataclass(frozen=True)
class Population:
    mean: float
    draw: Callable[[np.random.Generator, int], Floats]


POPULATIONS = {
    "normal": Population(0.0, lambda random, n: random.normal(size=n)),
    "exponential": Population(1.0, lambda random, n: random.exponential(size=n)),
    "lognormal": Population(math.exp(0.5), lambda random, n: random.lognormal(size=n)),
    "judge's scores": Population(
        float(_SCORES @ _SHARES), lambda random, n: random.choice(_SCORES, n, p=np.array(_SHARES))
    ),
    "ceiling": Population(9.3, lambda random, n: np.where(random.random(n) < 0.9, 10.0, random.integers(1, 6, n))),
    "80% ties": Population(0.1, lambda random, n: random.choice([-1.0, 0.0, 1.0], n, p=[0.05, 0.8, 0.15])),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000, help="of means and of pairs")
    parser.add_argument("--arena-simulations", type=int, default=200, help="of Arena-Hard")
    given = parser.parse_args()
    random = np.random.default_rng(2026)
    coverage = {
        "means": {
            name: {n: _covered(population.mean, _means(random, population, n, given.simulations)) for n in ITEMS}
            for name, population in POPULATIONS.items()
        },
        "pairs": {
            f"{verdicts} verdicts a question, {truth:.0%}": {
                n: _covered(truth, _pairs(random, level, n, verdicts, given.simulations)) for n in QUESTIONS
            }
            for verdicts in (2, 6)
            for level in (0.0, 1.0, 2.0)
            for truth in (float(_points(_verdicts(random, level, _MANY, 1)).mean()),)
        },
        "arena_hard": {
            f"{truth:.0f}%": {
                n: _covered(truth, _arena(random, level, n, given.arena_simulations)) for n in ARENA_QUESTIONS
            }
            for level in (-1.0, 0.0, 1.0)
            for truth in (_weighted(_verdicts(random, level, _MANY, 1)),)
        },
    }
    print(json.dumps(coverage, indent=2))


def _covered(truth: float, intervals: Iterator[Interval]) -> dict[str, float | None]:
    inside, widths, none = [], [], 0
    for low, high in intervals:
        if low is None or high is None:
            none += 1
            continue
        # Ends at the truth itself cover it, whatever their rounding.
        inside.append(low - 1e-9 <= truth <= high + 1e-9)
        widths.append(high - low)
    return {
        "covered": round(100 * sum(inside) / len(inside), 1) if inside else None,
        "none": round(100 * none / (none + len(inside)), 1),
        "width": round(median(widths), 3) if widths else None,
    }


def _means(random: np.random.Generator, population: Population, items: int, simulations: int) -> Iterator[Interval]:
    for _ in range(simulations):
        interval = mean_interval(population.draw(random, items))
        yield interval.low, interval.high


def _pairs(
    random: np.random.Generator, level: float, questions: int, verdicts: int, simulations: int
) -> Iterator[Interval]:
    clusters = np.repeat(np.arange(questions), verdicts).tolist()
    for _ in range(simulations):
        points = _points(_verdicts(random, level, questions, verdicts)).ravel()
        interval = clustered_win_rate_interval(points, clusters)
        yield interval.low, interval.high


def _arena(random: np.random.Generator, level: float, questions: int, simulations: int) -> Iterator[Interval]:
    for _ in range(simulations):
        leanings = _verdicts(random, level, questions, 2)
        battles = [
            Battle("model", "baseline", float(point), 3 if abs(leaning) > _STRONG else 1, question)
            for question, games in enumerate(zip(leanings.tolist(), _points(leanings).tolist(), strict=True))
            for leaning, point in zip(*games, strict=True)
        ]
        rate = next(rate for rate in win_rates(battles, "baseline", bootstraps=_BOOTSTRAPS) if rate.model == "model")
        yield rate.low, rate.high


def _verdicts(random: np.random.Generator, level: float, questions: int, verdicts: int) -> Floats:
    """How much each verdict leans to the model: (questions, verdicts), correlated within a question."""
    of_question = random.normal(size=(questions, 1)) * math.sqrt(_CORRELATION)
    return level + of_question + random.normal(size=(questions, verdicts)) * math.sqrt(1 - _CORRELATION)


def _points(leanings: Floats) -> Floats:
    """1 for a win, 1/2 for a tie, 0 for a loss."""
    return np.where(leanings > _TIE, 1.0, np.where(leanings < -_TIE, 0.0, 0.5))


def _weighted(leanings: Floats) -> float:
    """The win rate in percent where strong verdicts count three times."""
    weights = np.where(np.abs(leanings) > _STRONG, 3.0, 1.0)
    return float(100 * (weights * _points(leanings)).sum() / weights.sum())


if __name__ == "__main__":
    main()
