"""Two models on the same items: McNemar's test against statsmodels, intervals, and what both promise over samples."""

from __future__ import annotations

from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import rankdata

from steerboard_statistics.paired_accuracy import paired_accuracy, weighted_accuracy
from steerboard_statistics.proportions import win_rate_interval


def answers(both: int, only_a: int, only_b: int, neither: int) -> tuple[list[int], list[int]]:
    return [1] * (both + only_a) + [0] * (only_b + neither), [1] * both + [0] * only_a + [1] * only_b + [0] * neither


@pytest.mark.parametrize("table", [(30, 12, 4, 14), (5, 0, 6, 1), (0, 3, 3, 0), (50, 0, 0, 7), (900, 61, 39, 20)])
def test_the_test_is_mcnemars(table: tuple[int, int, int, int]) -> None:
    from statsmodels.stats.contingency_tables import mcnemar  # slow to import, and every process collects this

    both, only_a, only_b, neither = table
    comparison = paired_accuracy(*answers(*table))
    oracle = mcnemar([[both, only_a], [only_b, neither]], exact=True).pvalue
    assert comparison.p == pytest.approx(min(oracle, 1.0), rel=1e-9)
    assert (comparison.n, comparison.only_a, comparison.only_b) == (sum(table), only_a, only_b)
    assert comparison.difference == pytest.approx((only_a - only_b) / sum(table))
    assert comparison.a - comparison.b == pytest.approx(comparison.difference)


def test_the_interval_is_tangos_for_the_difference_of_matched_shares() -> None:
    """`test_proportions` has the oracle of that interval, on the scale of a win rate."""
    comparison, tango = paired_accuracy(*answers(43, 9, 2, 6)), win_rate_interval(9, 49, 2)
    assert tango.low is not None
    assert tango.high is not None
    assert (comparison.low, comparison.high) == pytest.approx((2 * tango.low - 1, 2 * tango.high - 1))


def test_models_that_are_right_on_the_same_items_still_have_an_interval() -> None:
    comparison = paired_accuracy([1, 1, 0, 1] * 10, [1, 1, 0, 1] * 10)
    assert (comparison.difference, comparison.p) == (0, 1)
    assert comparison.low < -0.05
    assert comparison.high > 0.05


def test_one_group_has_the_interval_of_its_items() -> None:
    of_one_group = paired_accuracy(*answers(60, 25, 10, 5))
    whole = weighted_accuracy([(3.0, of_one_group)])
    assert (whole.difference, whole.low, whole.high) == pytest.approx(
        (of_one_group.difference, of_one_group.low, of_one_group.high)
    )
    assert whole.p == pytest.approx(2 * NormalDist().cdf(-15 / 35**0.5))


def test_the_weighted_test_and_interval_hold_what_they_say() -> None:
    """Samples are of two models that are equally good in every group: 5% of the tests are below 5%, and 95% of the
    intervals have the true difference, 0."""
    random = np.random.default_rng(7)
    small, covered, samples = 0, 0, 600
    for _ in range(samples):
        parts = []
        for weight, n, level, apart in ((1.0, 100, 0.8, 0.2), (1.0, 40, 0.6, 0.3), (2.0, 60, 0.9, 0.15)):
            only = random.random(n) < apart
            first = random.random(n) < 0.5
            same = random.random(n) < level
            a, b = np.where(only, first, same), np.where(only, ~first, same)
            parts.append((weight, paired_accuracy(a, b)))
        weighted = weighted_accuracy(parts)
        assert weighted.p is not None
        small += weighted.p < 0.05
        covered += weighted.low < 0 < weighted.high
    assert small / samples == pytest.approx(0.05, abs=0.027)
    assert covered / samples == pytest.approx(0.95, abs=0.027)


def test_a_few_items_that_tell_two_models_apart_are_no_weighted_test() -> None:
    few, many = paired_accuracy(*answers(10, 4, 2, 0)), paired_accuracy(*answers(10, 40, 20, 0))
    assert weighted_accuracy([(1.0, few)]).p is None
    # Ninety in a hundred of the weight on six items are six items.
    assert weighted_accuracy([(0.97, few), (0.03, many)]).p is None
    assert weighted_accuracy([(0.1, few), (0.9, many)]).p is not None


def test_shares_of_a_right_answer_are_tested_by_their_ranks() -> None:
    """Wilcoxon's test over all signs of the differences."""
    a, b = [1.0, 0.5, 1.0, 0.25, 1.0, 0.5, 1.0, 1.0], [0.0, 1.0, 0.5, 1.0, 0.5, 0.0, 0.0, 0.5]
    differences = np.subtract(a, b)
    ranks = rankdata(np.abs(differences))
    signs = np.array(list(product([-1, 1], repeat=len(a))))
    comparison = paired_accuracy(a, b)
    assert comparison.difference == pytest.approx(differences.mean())
    assert comparison.p == pytest.approx((np.abs(signs @ ranks) >= abs(np.sign(differences) @ ranks)).mean())
