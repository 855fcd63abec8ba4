"""Do the intervals cover the truth as often as they say, and is no one named who is no better?

Simulated annotators see each answer's quality through noise and call answers within a step of each other equal. The
truth is the mean difference of rank scores over very many items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from steerboard_statistics.comparison import compare_pairs, compare_scores
from steerboard_statistics.ranks import rank_scores


@dataclass(frozen=True)
class Annotators:
    """`quality`: mean quality of each entrant's answers; `step`: what an annotator can't tell apart."""

    quality: tuple[float, ...]
    step: float
    count: int = 1
    spread: float = 0.7

    def scores(self, random: np.random.Generator, items: int) -> np.ndarray:
        """Rank scores (items, entrants), annotators averaged."""
        answers = random.normal(self.quality, self.spread, size=(items, 1, len(self.quality)))
        seen = answers + random.normal(size=(items, self.count, len(self.quality)))
        ranks = -np.round(seen / self.step)
        return rank_scores(ranks).mean(axis=1)


WORLDS = {
    "four entrants, few ties": (Annotators((0.0, 0.2, 0.4, 0.8), 0.5), 20),
    "two entrants, half ties": (Annotators((0.0, 0.3), 1.5), 30),
    "five entrants, three annotators": (Annotators((0.0, 0.2, 0.4, 0.4, 1.0), 1.0, count=3), 40),
    "many ties and one far ahead": (Annotators((0.0, 0.0, 0.2, 3.0), 2.5), 80),
}


def covered(annotators: Annotators, items: int, simulations: int) -> float:
    """How often a pair's interval holds the true difference."""
    random = np.random.default_rng(2026)
    many = annotators.scores(random, 300_000).mean(axis=0)
    entrants = [str(place) for place in range(len(many))]
    inside = []
    for seed in range(simulations):
        comparison = compare_scores(annotators.scores(random, items), entrants, seed=seed, pairwise_only=True)
        for row in comparison.pairs:
            true = many[int(row.a)] - many[int(row.b)]
            inside.append(row.difference.low <= true <= row.difference.high)
    return float(np.mean(inside))


def winners_named(entrants: int, step: float, items: int, simulations: int) -> float:
    """How often a winner is named among equals."""
    random = np.random.default_rng(7)
    equals = Annotators((0.0,) * entrants, step)
    names = [str(place) for place in range(entrants)]
    winners = [
        compare_scores(equals.scores(random, items), names, resamples=20, pairwise_only=True).winner
        for _ in range(simulations)
    ]
    return sum(winner is not None for winner in winners) / simulations


def test_the_annotators_tie_and_differ():
    scores = Annotators((0.0, 0.3), 1.5).scores(np.random.default_rng(0), 2000)
    assert 0.3 < (scores[:, 0] == scores[:, 1]).mean() < 0.7
    assert scores[:, 1].mean() > scores[:, 0].mean() + 0.05


@pytest.mark.parametrize("world", ["four entrants, few ties", "two entrants, half ties"])
def test_true_differences_are_covered(world):
    assert 0.92 <= covered(*WORLDS[world], simulations=150) <= 0.98


@pytest.mark.parametrize("entrants", [2, 3])
def test_hardly_ever_is_a_winner_named_among_equals(entrants):
    assert winners_named(entrants, 1.0, 30, 200) <= 0.09


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
def test_true_differences_are_covered_in_95_percent_of_1000_simulations(world):
    assert 0.93 <= covered(*WORLDS[world], simulations=1000) <= 0.97


@pytest.mark.long
@pytest.mark.parametrize(
    ("entrants", "step", "items"), [(2, 0.5, 20), (2, 1.5, 30), (2, 3.0, 40), (2, 0.01, 80), (3, 1.0, 20), (5, 1.0, 40)]
)
def test_a_winner_is_named_among_equals_in_at_most_6_and_a_half_percent_of_1000_simulations(entrants, step, items):
    assert winners_named(entrants, step, items, 1000) <= 0.065


@pytest.mark.long
def test_a_judge_of_pairs_names_no_winner_among_equals_either():
    random, named = np.random.default_rng(3), 0
    for _ in range(1000):
        values = random.choice([0.0, 0.5, 1.0], p=[0.4, 0.2, 0.4], size=(40, 2))
        rows = [
            (i, *pair, float(v)) for i, both in enumerate(values) for pair, v in zip(("ab", "ba"), both, strict=True)
        ]
        named += compare_pairs(rows, ["a", "b"], resamples=20).winner is not None
    assert named / 1000 <= 0.065


def test_a_clearly_better_entrant_is_named():
    random = np.random.default_rng(1)
    comparison = compare_scores(Annotators((0.0, 0.3, 2.0), 1.0).scores(random, 60), ["sft", "dpo", "dt"])
    assert comparison.winner == "dt"
