"""Which answers to a prompt are compared with one another, and how each fares over its comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

IndexPair = tuple[int, int]


def schedule(answers: int, opponents: int, seed: int, group: int) -> list[IndexPair]:
    """Places of the answers that meet, the lower one first: all pairs of up to `opponents + 1` answers.

    More of them form a circle in an order that (seed, group) draws, and each meets those nearest to it on either
    side: a round-robin with as many comparisons for every answer, whose number grows with the answers and not with
    their square. An odd `opponents` adds the answer across the circle, where there is one. `opponents` is at least 2.
    """
    if answers <= opponents + 1:
        return [(one, other) for one in range(answers) for other in range(one + 1, answers)]
    key = np.array([seed % 2**64, group % 2**64], dtype=np.uint64)
    random = np.random.Generator(np.random.Philox(key=key))
    circle = random.permutation(answers).tolist()
    pairs = [(place, (place + step) % answers) for step in range(1, opponents // 2 + 1) for place in range(answers)]
    if opponents % 2 and answers % 2 == 0:
        pairs += [(place, place + answers // 2) for place in range(answers // 2)]
    met = ((circle[one], circle[other]) for one, other in pairs)
    return sorted((min(pair), max(pair)) for pair in met)


def win_rates(answers: int, pairs: Sequence[IndexPair], p: Sequence[float]) -> NDArray[np.float64]:
    """The mean probability of each answer that it is better than those it met: (answers,); 1/2 where it met none.

    `p`: that the first of a pair is. Over all pairs this orders the answers as the Bradley-Terry model would.
    """
    points, met = np.zeros(answers), np.zeros(answers)
    for (one, other), share in zip(pairs, p, strict=True):
        points[one] += share
        points[other] += 1 - share
        met[one] += 1
        met[other] += 1
    points[met == 0], met[met == 0] = 0.5, 1
    return points / met
