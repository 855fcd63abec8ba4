"""The condition's gain on a tabular problem, where every figure has a closed form."""

from __future__ import annotations

import numpy as np
import pytest

from steerboard_statistics.condition_gain import mean_gain, mixture_log_probs

# p(s) and p(y | s) in 24ths, of three scores that mirror each other and four answers.
SCORES = np.array([6, 12, 6]) / 24
ANSWERS = np.array([[12, 6, 3, 3], [3, 9, 9, 3], [1, 2, 6, 15]]) / 24
ROWS = 24 * 24


def population() -> tuple[np.ndarray, np.ndarray]:
    """(s, y) of rows that are exactly as frequent as the joint distribution has them."""
    pairs = [(s, y) for s in range(3) for y in range(4) for _ in range(round(ROWS * SCORES[s] * ANSWERS[s, y]))]
    assert len(pairs) == ROWS
    return tuple(np.array(pairs).T)


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    return float((p * np.log(p / q)).sum())


def test_over_the_mixture_it_is_the_mutual_information() -> None:
    s, y = population()
    gain = mean_gain(np.log(ANSWERS)[s, y], mixture_log_probs(np.log(ANSWERS)[:, y].T, SCORES), range(ROWS))
    joint, independent = SCORES[:, None] * ANSWERS, np.outer(SCORES, SCORES @ ANSWERS)
    assert gain.value == pytest.approx(divergence(joint, independent), abs=1e-12)
    assert gain.low < gain.value < gain.high


def test_over_a_shuffled_condition_it_is_mutual_and_lautum_information() -> None:
    s, y = population()
    shuffled = np.log(ANSWERS)[:, y].T @ SCORES  # the mean over all conditions, each as frequent as it is
    joint, independent = SCORES[:, None] * ANSWERS, np.outer(SCORES, SCORES @ ANSWERS)
    closed = divergence(joint, independent) + divergence(independent, joint)
    assert mean_gain(np.log(ANSWERS)[s, y], shuffled, range(ROWS)).value == pytest.approx(closed, abs=1e-12)


def test_over_the_opposite_condition_it_is_a_mean_divergence() -> None:
    s, y = population()
    gain = mean_gain(np.log(ANSWERS)[s, y], np.log(ANSWERS)[2 - s, y], range(ROWS))
    closed = sum(SCORES[k] * divergence(ANSWERS[k], ANSWERS[2 - k]) for k in range(3))
    assert gain.value == pytest.approx(closed, abs=1e-12)


def test_a_condition_that_is_ignored_gains_nothing() -> None:
    _, y = population()
    own = np.log(SCORES @ ANSWERS)[y]
    assert mean_gain(own, mixture_log_probs(np.column_stack([own] * 3), SCORES), range(ROWS)).value == pytest.approx(0)


def test_the_interval_is_over_prompts() -> None:
    gains = np.random.default_rng(0).normal(1, 1, 20)
    alone = mean_gain(gains, np.zeros(20), [f"prompt {place}" for place in range(20)])
    repeated = mean_gain(np.repeat(gains, 5), np.zeros(100), [f"prompt {place // 5}" for place in range(100)])
    assert (repeated.n, repeated.value) == (20, pytest.approx(alone.value))
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))


def test_few_prompts_have_no_interval() -> None:
    gain = mean_gain([-1.0, -2.0], [-2.0, -4.0], ["a", "b"])
    assert (gain.value, gain.low, gain.n) == (1.5, None, 2)
