"""The win rate at equal length against a general regression, and where nothing but length decides."""

from __future__ import annotations

import numpy as np
import pytest

from steerboard_statistics.length_adjusted import length_adjusted


def drawn(seed: int, n: int, by_length: float, better: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(values, lengths, other lengths): answers that are mostly the longer ones, and win by length and by quality."""
    random = np.random.default_rng(seed)
    theirs = np.exp(random.normal(6.0, 0.4, n))
    ours = theirs * np.exp(random.normal(0.35, 0.25, n))
    chance = 1 / (1 + np.exp(-better - by_length * np.log(ours / theirs)))
    values = np.where(random.random(n) < 0.1, 0.5, (random.random(n) < chance).astype(float))
    return values, ours, theirs


def test_it_is_the_logistic_regression_with_robust_errors() -> None:
    import statsmodels.api as sm  # slow to import, and every process collects this

    values, ours, theirs = drawn(1, 200, 1.5, 0.4)
    model = sm.GLM(values, sm.add_constant(np.log(ours / theirs)), family=sm.families.Binomial())
    oracle = model.fit(cov_type="HC0")
    # White's variance, for two coefficients (HC1).
    apart = 1.959964 * oracle.bse[0] * (200 / 198) ** 0.5
    rate = length_adjusted(values, ours, theirs)
    ends = [1 / (1 + np.exp(-oracle.params[0] - shift)) for shift in (0, -apart, apart)]
    assert (rate.value, rate.low, rate.high, rate.n) == (*(pytest.approx(end, abs=1e-6) for end in ends), 200)


def test_where_only_length_decides_the_adjusted_rate_is_a_half_and_the_one_at_like_length_is_not() -> None:
    held, rates, samples = 0, [], 200
    for seed in range(samples):
        values, ours, theirs = drawn(seed, 150, 3.0, 0.0)
        rate = length_adjusted(values, ours, theirs)
        assert rate.low is not None
        assert rate.high is not None
        held += rate.low < 0.5 < rate.high
        alike = np.maximum(ours, theirs) <= 1.5 * np.minimum(ours, theirs)
        rates.append(values[alike].mean())
    assert held / samples > 0.9
    assert np.mean(rates) > 0.57


def test_answers_the_other_way_round_have_the_other_rate() -> None:
    values, ours, theirs = drawn(2, 80, 1.0, 0.5)
    one, other = length_adjusted(values, ours, theirs), length_adjusted(1 - values, theirs, ours)
    assert one.value is not None
    assert other.value == pytest.approx(1 - one.value)


@pytest.mark.parametrize("values", [[1.0] * 20, [0.0] * 10 + [1.0] * 10, [1.0, 0.0, 0.5]])
def test_what_has_no_maximum_has_no_rate(values: list[float]) -> None:
    """All won, separated by length, or too few."""
    lengths = [100.0 + 10 * n for n in range(len(values))]
    assert length_adjusted(values, lengths, [195.0] * len(values)).value is None


def test_lengths_of_one_ratio_have_no_rate() -> None:
    """Whatever the lengths do cannot be separated from which answer is better."""
    theirs = np.arange(100.0, 120.0)
    assert length_adjusted([1.0, 0.0, 0.5, 1.0] * 5, 2 * theirs, theirs).value is None
