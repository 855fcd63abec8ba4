"""Differences of two models on the same items."""

from __future__ import annotations

import numpy as np
import pytest

from steerboard_contracts.report.academic import figure_names
from steerboard_statistics.benchmarks.academic import mean_of, paired_difference
from steerboard_statistics.bootstrap import mean_interval
from steerboard_statistics.proportions import proportion_interval, win_rate_interval


def test_right_and_wrong_have_tangos_interval() -> None:
    ours, theirs = [1] * 43 + [0] + [1] * 12, [1] * 43 + [0] + [0] * 12
    difference, share = paired_difference(ours, theirs), win_rate_interval(12, 44, 0)
    assert (difference.value, difference.n) == (pytest.approx(12 / 56), 56)
    assert (difference.low, difference.high) == (2 * (share.low or 0) - 1, 2 * (share.high or 0) - 1)
    turned = paired_difference(theirs, ours)
    assert (turned.low, turned.high) == (pytest.approx(-(difference.high or 0)), pytest.approx(-(difference.low or 0)))


def test_two_that_agree_everywhere_have_an_interval_around_0() -> None:
    difference = paired_difference([1] * 100, [1] * 100)
    assert difference.value == 0
    assert difference.low is not None
    assert difference.high is not None
    assert -0.05 < difference.low < 0 < difference.high < 0.05


def test_a_paired_interval_is_narrower_than_what_the_two_alone_would_give() -> None:
    random = np.random.default_rng(0)
    theirs = random.integers(0, 2, 400)
    ours = theirs.copy()
    ours[:20] = 1
    difference = paired_difference(ours.tolist(), theirs.tolist())
    assert difference.low is not None
    assert difference.high is not None
    apart = 2 * 1.96 * (2 * 0.25 / 400) ** 0.5
    assert difference.high - difference.low < apart / 2


def test_scores_between_have_the_bootstraps_interval_and_few_items_none() -> None:
    random = np.random.default_rng(1)
    ours, theirs = random.random(50), random.random(50)
    assert paired_difference(ours.tolist(), theirs.tolist()) == mean_interval(ours - theirs)
    few = paired_difference([1, 1, 0], [0, 0, 0])
    assert (few.value, few.low, few.high, few.n) == (pytest.approx(2 / 3), None, None, 3)
    assert mean_of([1, 0, 1, 1]) == proportion_interval(3, 4)
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_difference([1], [1, 0])


def test_figures_have_short_names_that_differ() -> None:
    readings = [("exact_match", "strict-match"), ("exact_match", "flexible-extract")]
    assert figure_names(readings) == ["strict", "flexible"]
    assert figure_names([("acc", "none"), ("acc_norm", "none")]) == ["acc", "acc_norm"]
    assert figure_names([("pass@1", "create_test")]) == ["pass@1"]
    two = [("exact_match", "strict-match"), ("f1", "strict-match"), ("f1", "first"), ("f1", "none")]
    assert figure_names(two) == ["strict", "f1:strict-match", "f1:first", "f1"]
