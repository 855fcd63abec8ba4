"""Figures of a reward model against closed forms and brute force."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steerboard_statistics.rewards import (
    best_of_n,
    calibration,
    histograms,
    length_cells,
    length_correlation,
    pair_accuracy,
)

gap = math.nan


def test_accuracy_counts_only_strictly_larger_rewards():
    accuracy = pair_accuracy([1.0, 0.5, 0.0, -2.0, gap])
    assert (accuracy.value, accuracy.n) == (0.5, 4)
    assert accuracy.low < 0.2
    assert accuracy.high > 0.8
    assert pair_accuracy([]).value is None


def test_a_model_whose_margins_are_log_odds_is_calibrated():
    random = np.random.default_rng(0)
    margins = random.normal(0, 2, size=40_000)
    right = random.random(40_000) < 1 / (1 + np.exp(-np.abs(margins)))
    honest = calibration(np.where(right, 1, -1) * np.abs(margins))
    assert honest.expected_error < 0.01
    assert sum(part.n for part in honest.bins) == 40_000
    boastful = calibration(np.where(right, 1, -1) * np.abs(margins) * 5)
    assert boastful.expected_error > 0.1


def test_calibration_by_hand():
    calibrated = calibration([math.log(3), math.log(3), -math.log(3), math.log(3), 0.0])
    assert len(calibrated.bins) == 10
    assert (calibrated.bins[0].low, calibrated.bins[-1].high) == (0.5, 1.0)
    full = next(place for place, part in enumerate(calibrated.bins) if part.n == 4)
    assert calibrated.bins[full].mean == pytest.approx(0.75)
    assert calibrated.accuracy_by_bin[full] == 0.75
    assert (calibrated.accuracy_by_bin[0], calibrated.bins[0].mean) == (0.5, 0.5)
    assert calibrated.accuracy_by_bin[9] is None is calibrated.bins[9].mean
    assert calibrated.expected_error == pytest.approx(0)
    assert calibration([gap]) is None
    json.dumps(calibration([800.0, -800.0]).model_dump(), allow_nan=False)


def test_length_correlation_is_pearsons_by_prompt():
    random = np.random.default_rng(1)
    rewards, lengths = random.normal(size=(4, 8)), random.integers(10, 90, size=(4, 8)).astype(float)
    rewards[0, 3] = gap
    rewards[1, :] = 0.1 + 0.2
    lengths[2, 2:] = gap
    correlations = length_correlation(rewards, lengths)
    kept = np.isfinite(rewards[0])
    assert correlations[0] == (pytest.approx(stats.pearsonr(rewards[0][kept], lengths[0][kept]).statistic), 7)
    assert correlations[1] == (None, 8)
    assert correlations[2] == (None, 2)
    assert correlations[3] == (pytest.approx(stats.pearsonr(rewards[3], lengths[3]).statistic), 8)
    cells = length_cells("dt", [5, 6, 7, 8], rewards, lengths)
    assert [(cell.entrant, cell.position, cell.r, cell.n) for cell in cells[1:3]] == [
        ("dt", 6, None, 8),
        ("dt", 7, None, 2),
    ]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=7), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_the_best_of_n_is_the_mean_over_all_ways_to_draw_n(samples, n):
    n = min(n, len(samples))
    expected = np.mean([max(drawn) for drawn in itertools.combinations(samples, n)])
    sizes, estimates = best_of_n([samples], [n])
    assert sizes == [n]
    assert estimates[0].value == pytest.approx(expected)


def test_the_best_of_n_curve_rises_over_the_same_prompts():
    random = np.random.default_rng(2)
    rewards = random.normal(size=(30, 8))
    rewards[3, 4:] = gap
    sizes, estimates = best_of_n(rewards)
    assert sizes == [1, 2, 4, 8]
    assert [estimate.n for estimate in estimates] == [29] * 4
    values = [estimate.value for estimate in estimates]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(np.delete(rewards, 3, axis=0).max(axis=1).mean())
    assert all(e.low < e.value < e.high for e in estimates)
    assert best_of_n(np.zeros((0, 8))) == ([], [])
    assert best_of_n([[gap, gap]]) == ([], [])


def test_histograms_share_their_edges_and_lose_nothing():
    by_entrant = histograms({"dt": [0.0, 1.0, 10.0, gap], "sft": [5.0], "none": []}, bins=5)
    assert [(part.low, part.high) for part in by_entrant["dt"]] == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    assert [part.n for part in by_entrant["dt"]] == [2, 0, 0, 0, 1]
    assert [part.n for part in by_entrant["sft"]] == [0, 0, 1, 0, 0]
    assert [part.n for part in by_entrant["none"]] == [0] * 5
    assert [(part.low, part.high, part.n) for part in histograms({"a": [3.0, 3.0]})["a"]] == [(3, 3, 2)]
    assert histograms({"a": [gap]}) == {"a": []}
