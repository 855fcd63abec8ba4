"""Weights by which rows of rare scores count as much as those of frequent ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

BINS = 10
# A row that is learned again and again is learned by heart, so rare scores are made up for to this extent only.
MOST = 5.0


@dataclass(frozen=True)
class ScoreBalance:
    """`weights`: by tenth of the range from -limit to limit, the weight of a row; their mean over the rows is 1."""

    limit: float
    weights: dict[int, float]

    @classmethod
    def fit(cls, scores: Sequence[float], limit: float) -> ScoreBalance:
        """Inverse to how many rows have a score of the same tenth, and at most `MOST` times the mean."""
        counts = Counter(_tenth(score, limit) for score in scores)
        rows = len(scores)
        even = {tenth: min(MOST, rows / (len(counts) * count)) for tenth, count in counts.items()}
        mean = sum(even[tenth] * count for tenth, count in counts.items()) / rows if rows else 1.0
        return cls(limit, {tenth: weight / mean for tenth, weight in even.items()})

    def of(self, score: float) -> float:
        return self.weights.get(_tenth(score, self.limit), 1.0)


def _tenth(score: float, limit: float) -> int:
    return min(BINS - 1, max(0, int((score + limit) / (2 * limit) * BINS)))
