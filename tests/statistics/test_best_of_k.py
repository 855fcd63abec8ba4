"""The best-of-k curve from one sampling, against every subset, and without bias."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerboard_statistics.best_of_k import best_of_k, kl_bound, rank_weights

rewards = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=7)


def by_enumeration(scores, values, k):
    """Mean over all subsets of k; of equally good answers each is chosen as often."""
    tops = []
    for subset in itertools.combinations(range(len(scores)), k):
        top = max(scores[i] for i in subset)
        tops.append(np.mean([values[i] for i in subset if scores[i] == top]))
    return np.mean(tops)


@given(rewards, st.data())
def test_the_curve_is_the_mean_over_all_subsets(scores, data):
    lengths = data.draw(st.lists(st.integers(0, 50).map(float), min_size=len(scores), max_size=len(scores)))
    for values in (scores, lengths):
        curve = best_of_k([scores], [values], len(scores))[0]
        expected = [by_enumeration(scores, values, k) for k in range(1, len(scores) + 1)]
        assert curve == pytest.approx(expected, abs=1e-9)


def test_hand_made_rewards_give_known_numbers():
    curve = best_of_k([[1.0, 0.0, 3.0, 2.0]], [[1.0, 0.0, 3.0, 2.0]], 4)[0]
    # Three of six pairs have the 3, two the 2, one the 1.
    assert curve == pytest.approx([1.5, (3 * 3 + 2 * 2 + 1) / 6, 2.75, 3.0])
    lengths = best_of_k([[1.0, 0.0, 3.0, 2.0]], [[10.0, 20.0, 30.0, 40.0]], 4)[0]
    assert lengths == pytest.approx([25, (3 * 30 + 2 * 40 + 10) / 6, (3 * 30 + 40) / 4, 30])


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(1, 9)), min_size=1, max_size=4), st.integers(1, 3))
def test_the_curve_has_no_bias(outcomes, extra):
    """A policy with few answers: the expected curve over every sampling of n is the best of k draws, exactly."""
    values = [value for value, _ in outcomes]
    chances = np.array([weight for _, weight in outcomes], dtype=float)
    chances /= chances.sum()
    n = extra + 1

    def samplings(size):
        for places in itertools.product(range(len(values)), repeat=size):
            yield np.prod(chances[list(places)]), [values[i] for i in places]

    average = sum(chance * best_of_k([drawn], [drawn], n)[0] for chance, drawn in samplings(n))
    truth = [sum(chance * max(drawn) for chance, drawn in samplings(k)) for k in range(1, n + 1)]
    assert average == pytest.approx(truth, abs=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=64))
def test_the_curve_never_falls_and_ends_at_the_best(scores):
    curve = best_of_k([scores], [scores], len(scores))[0]
    slack = 1e-9 * max(1.0, *map(abs, scores))
    assert (np.diff(curve) >= -slack).all()
    assert curve[0] == pytest.approx(np.mean(scores), abs=slack)
    assert curve[-1] == pytest.approx(max(scores), abs=slack)


@pytest.mark.parametrize("k", [1, 2, 128, 255, 256])
def test_weights_of_many_answers_are_probabilities(k):
    weights = rank_weights(256, k)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (weights >= 0).all()
    assert np.count_nonzero(weights) <= 257 - k


def test_the_divergence_of_the_best_of_k_is_within_its_bound():
    assert kl_bound(8) == pytest.approx(1.2044, abs=1e-4)
    assert kl_bound(1) == 0
    for chances in ([0.5, 0.5], [0.05] * 20, [0.9, 0.1]):
        below = np.cumsum([0.0, *chances])
        for k in range(1, 9):
            best = np.diff(below**k)
            divergence = sum(p * math.log(p / q) for p, q in zip(best, chances, strict=True))
            assert divergence <= kl_bound(k) + 1e-12
