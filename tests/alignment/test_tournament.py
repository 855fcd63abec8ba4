"""Which answers meet in a tournament, and what a win rate is made of."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steerboard_workers.alignment.tournament import schedule, win_rates


@given(st.integers(1, 40), st.integers(2, 12), st.integers(0, 2**63), st.integers(-5, 5))
@settings(max_examples=150, deadline=None)
def test_every_answer_meets_as_many_different_others_as_every_other(answers, opponents, seed, group):
    pairs = schedule(answers, opponents, seed, group)
    assert len(set(pairs)) == len(pairs)
    assert all(0 <= one < other < answers for one, other in pairs)
    met = Counter(place for pair in pairs for place in pair)
    if answers <= opponents + 1:
        assert len(pairs) == answers * (answers - 1) // 2
    else:
        # An odd number of answers cannot all have an odd number of opponents.
        assert {met[place] for place in range(answers)} == {opponents - (opponents % 2 and answers % 2)}
        assert pairs == schedule(answers, opponents, seed, group)


def test_who_meets_is_drawn_for_each_group_and_seed():
    drawn = [schedule(12, 3, seed, group) for seed in (0, 1) for group in (0, 1)]
    assert len({tuple(pairs) for pairs in drawn}) == 4


def test_a_win_rate_is_the_mean_over_those_it_met():
    rates = win_rates(4, [(0, 1), (0, 2), (1, 2)], [0.9, 0.7, 0.4])
    assert rates == pytest.approx([0.8, 0.25, 0.45, 0.5])


def test_over_all_pairs_the_best_is_the_one_that_is_most_likely_to_win():
    random = np.random.default_rng(0)
    strength = random.normal(size=8)
    pairs = schedule(8, 7, 0, 0)
    p = [1 / (1 + np.exp(strength[other] - strength[one])) for one, other in pairs]
    assert list(np.argsort(win_rates(8, pairs, p))) == list(np.argsort(strength))


def test_a_circle_of_many_finds_an_answer_near_the_top():
    """Seven comparisons an answer, of 32: the chosen one is among the best eighth, and far from the worst."""
    random = np.random.default_rng(0)
    places = []
    for group in range(200):
        strength = random.normal(size=32)
        pairs = schedule(32, 7, 0, group)
        p = [1 / (1 + np.exp(3 * (strength[other] - strength[one]))) for one, other in pairs]
        best = int(win_rates(32, pairs, p).argmax())
        places.append(int((strength > strength[best]).sum()))
    assert np.mean(places) < 2
    assert max(places) < 12
