"""The report's statistics against scipy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steerboard_workers.stages.evaluation.statistics import Bootstrap, distinct_n, spearman, win_rate

numbers = st.floats(-1e3, 1e3).map(lambda x: round(x, 1))


@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=40))
@settings(max_examples=200, deadline=None)
def test_spearman_equals_scipy_ties_included(points):
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    ours = spearman(xs, ys)
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert ours is None
    else:
        assert ours == pytest.approx(stats.spearmanr(xs, ys).statistic, abs=1e-9)


def test_bootstrap_interval_equals_scipys_percentile_bootstrap():
    values = np.random.default_rng(0).gamma(2.0, size=150)
    ours = Bootstrap(150, 20_000, seed=1).interval(values.tolist())
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert ours.mean == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.high, abs=0.01)


def test_bootstrap_is_repeatable_and_shared_between_entrants():
    values = [0.0, 1.0, 4.0, 2.0]
    assert Bootstrap(4, 500, 3).interval(values) == Bootstrap(4, 500, 3).interval(values)
    shared = Bootstrap(4, 500, 3)
    shifted = shared.interval([v + 10 for v in values])
    assert shifted.low - 10 == pytest.approx(shared.interval(values).low)


def test_a_tie_is_half_a_win():
    assert win_rate([1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 5.0, 4.0]) == 0.5


def test_distinct_n_counts_over_all_texts():
    assert distinct_n(["a b a", "a b"], 1) == 2 / 5
    assert distinct_n(["a b a", "A b."], 2) == 2 / 3
    assert distinct_n(["", "a"], 2) == 0.0
