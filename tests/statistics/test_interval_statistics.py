"""Intervals against scipy, statsmodels and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from steerboard_statistics import bootstrap
from steerboard_statistics.bootstrap import (
    MOST_GROUPS,
    Resamples,
    mean_interval,
    ratio_interval,
    skewed_ends,
    tail_share,
)
from steerboard_statistics.proportions import clustered_win_rate_interval, proportion_interval, win_rate_interval

finite = st.floats(-1e6, 1e6)


def test_for_many_items_the_interval_is_scipys_percentile_bootstrap():
    values = np.random.default_rng(0).gamma(2.0, size=150)
    low, high = bootstrap.percentiles(Resamples(150, 20_000, seed=1).means(values[:, None]), 150)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert (low[0], high[0]) == (pytest.approx(theirs.low, abs=0.01), pytest.approx(theirs.high, abs=0.01))
    whole = Resamples(150, 20_000, seed=1).interval(values.tolist())
    assert whole.mean == pytest.approx(values.mean())
    # With the end in the long tail somewhat further out.
    assert whole.low == low[0]
    assert high[0] <= whole.high < high[0] + 0.1 * (high[0] - low[0])


def test_for_few_items_it_is_as_wide_as_students():
    values = stats.norm.ppf((np.arange(20) + 0.5) / 20)
    interval = mean_interval(values, resamples=20_000)
    half = stats.t.ppf(0.975, 19) * values.std(ddof=1) / math.sqrt(20)
    assert interval.high == pytest.approx(half, rel=0.03)
    assert interval.low == pytest.approx(-half, rel=0.03)
    assert interval.high > 1.04 * np.quantile(Resamples(20, 20_000).means(values[:, None]), 0.975)


def test_the_tail_that_is_cut_off_grows_to_two_and_a_half_percent():
    assert tail_share(10) < tail_share(40) < tail_share(1000) < 0.025
    assert tail_share(10**6) == pytest.approx(0.025, abs=1e-6)


def test_resamples_are_repeatable_and_shared_between_entrants():
    values = [0.0, 1.0, 4.0, 2.0]
    assert Resamples(4, 500, 3).interval(values) == Resamples(4, 500, 3).interval(values)
    other = Resamples(4, 500, 4).means(np.array(values)[:, None])
    assert (Resamples(4, 500, 3).means(np.array(values)[:, None]) != other).any()
    shared = Resamples(4, 500, 3)
    assert shared.interval([v + 10 for v in values]).low - 10 == pytest.approx(shared.interval(values).low)


def test_each_resample_has_as_many_items_as_there_are():
    drawn = Resamples(37, 1200, 5).sums(np.ones((37, 1)))
    assert drawn.shape == (1200, 1)
    assert (drawn == 37).all()


def test_very_many_items_are_drawn_in_groups_with_the_same_interval():
    values = np.random.default_rng(1).exponential(size=3 * MOST_GROUPS + 1)
    interval = mean_interval(values)
    half = 1.96 * values.std(ddof=1) / math.sqrt(values.size)
    assert interval.n == values.size
    assert interval.value == pytest.approx(values.mean())
    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.08)


@pytest.mark.parametrize("n", range(8))
def test_too_few_items_have_a_mean_and_no_interval(n):
    interval = mean_interval(np.arange(n))
    assert (interval.n, interval.low, interval.high) == (n, None, None)
    assert interval.value == (None if n == 0 else (n - 1) / 2)


@given(st.lists(finite | st.just(math.nan), max_size=30))
@settings(max_examples=100, deadline=None)
def test_an_interval_holds_its_mean_and_is_never_nan(values):
    interval = mean_interval(values, resamples=100)
    known = [v for v in values if math.isfinite(v)]
    assert interval.n == len(known)
    if interval.low is not None and interval.high is not None and interval.value is not None:
        assert min(known) - 1e-6 <= interval.low <= interval.value <= interval.high <= max(known) + 1e-6
        assert len(known) >= 8
        assert len(set(known)) > 1


def test_equal_items_have_no_interval_for_they_do_not_prove_that_others_are_like_them():
    assert mean_interval([0.0] * 20) == bootstrap.Estimate(value=0.0, n=20)
    assert mean_interval([0.1] * 12).low is None
    assert mean_interval([0.0] * 19 + [1.0]).low == 0


def test_means_of_items_that_nearly_all_tie_are_covered_where_there_is_an_interval():
    """80% ties. Where all of ten items tie, an interval without width would miss the mean of 0.1."""
    random, inside = np.random.default_rng(4), []
    for seed in range(400):
        interval = mean_interval(random.choice([-1.0, 0.0, 1.0], 10, p=[0.05, 0.8, 0.15]), seed=seed, resamples=400)
        if interval.low is not None:
            inside.append(interval.low <= 0.1 <= interval.high)
    assert 300 < len(inside) < 400
    assert np.mean(inside) >= 0.85


def test_without_skewness_the_ends_are_students():
    values = np.array([-5.0, -3.0, -1.0, -0.5, 0.5, 1.0, 3.0, 5.0])
    low, high = skewed_ends(values[:, None])
    assert (low[0], high[0]) == pytest.approx(stats.t.interval(0.95, 7, 0, values.std(ddof=1) / math.sqrt(8)))


def test_the_end_in_a_long_tail_is_further_out_but_never_beyond_the_items():
    values = np.array([1.0, 1.2, 1.3, 1.5, 1.6, 2.0, 2.2, 9.0])
    low, high = skewed_ends(np.column_stack([values, -values, [*values[:-1], math.nan]]))
    half = stats.t.ppf(0.975, 7) * values.std(ddof=1) / math.sqrt(8)
    assert values.mean() + half < high[0] <= 9
    assert 1 <= low[0] < values.mean()
    assert (low[1], high[1]) == pytest.approx((-high[0], -low[0]))
    assert (low[2], high[2]) == pytest.approx([end[0] for end in skewed_ends(values[:-1, None])])


@pytest.mark.parametrize(("items", "least"), [(8, 0.88), (10, 0.88), (20, 0.9)])
def test_means_of_populations_with_a_long_tail_are_covered(items, least):
    """The interval covers 90 to 93% of lognormal samples; percentiles alone cover 83 to 89%."""
    random, inside = np.random.default_rng(5), 0
    for _ in range(600):
        interval = mean_interval(random.lognormal(size=items))
        inside += interval.low <= math.exp(0.5) <= interval.high
    assert inside / 600 >= least


@given(st.lists(st.integers(0, 9), min_size=8, max_size=20), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_items_in_any_order_have_one_interval(values, random):
    shuffled = random.sample(values, len(values))
    assert mean_interval(values, resamples=200) == mean_interval(shuffled, resamples=200)


def test_a_ratio_is_of_means_on_the_same_items():
    top, bottom = np.arange(10, 30, dtype=float), np.full(20, 10.0)
    ratio = ratio_interval([*top, math.nan], [*bottom, 1.0])
    assert ratio.value == pytest.approx(1.95)
    assert ratio.n == 20
    assert ratio.low == pytest.approx(mean_interval(top).low / 10)
    # The two move together, so their ratio hardly moves.
    together = ratio_interval(2 * top, top)
    assert together.low == pytest.approx(2) == together.high
    assert ratio_interval(np.ones(20), np.zeros(20)).value is None
    assert ratio_interval([], []).value is None


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=100, deadline=None)
def test_a_share_has_wilsons_interval(counts):
    from statsmodels.stats.proportion import proportion_confint  # slow to import, and every process collects this

    successes, n = counts
    low, high = proportion_confint(successes, n, method="wilson")
    share = proportion_interval(successes, n)
    assert share.value == successes / n
    assert (share.low, share.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


def test_a_clean_sweep_of_three_proves_nothing_and_none_has_no_share():
    share = proportion_interval(3, 3)
    assert share.value == 1.0
    assert share.low < 0.5
    assert proportion_interval(0, 0) == bootstrap.Estimate(value=None, n=0)


def test_ties_narrow_the_interval_but_a_few_of_them_do_not_close_it():
    plain, tied = proportion_interval(10, 20), win_rate_interval(0, 20, 0)
    assert plain.low < tied.low < 0.5 < tied.high < plain.high
    assert tied.high - tied.low > 0.1


def test_a_win_rate_with_ties_has_tangos_interval():
    """The data are of patients before and after a transplantation (Bentur et al. 2009), as Fagerland, Lydersen and
    Laake give it in "Recommended tests and confidence intervals for paired binomial proportions" (Statistics in
    Medicine 33, 2014)."""
    rate = win_rate_interval(1, 13, 7)
    assert (2 * rate.low - 1, 2 * rate.high - 1) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert (rate.value, rate.n) == (pytest.approx(7.5 / 21), 21)


@pytest.mark.parametrize(("wins", "ties", "losses"), [(48, 460, 41), (3, 2, 1), (0, 30, 4), (9, 1, 0)])
def test_the_ends_of_a_win_rate_are_where_the_score_test_rejects(wins, ties, losses):
    """The share of losses is the one that makes the counts most likely, found by maximising their likelihood."""
    n, rate = wins + ties + losses, win_rate_interval(wins, ties, losses)
    for end in (rate.low, rate.high):
        d = 2 * end - 1

        def unlikely(q: float, d: float = d) -> float:
            shares = np.array([q + d, 1 - 2 * q - d, q])
            return -float(special.xlogy([wins, ties, losses], shares).sum())

        q = optimize.minimize_scalar(unlikely, bounds=(max(0, -d), (1 - d) / 2), options={"xatol": 1e-12}).x
        z = (wins - losses - n * d) / math.sqrt(n * (2 * q + d - d**2))
        assert abs(z) == pytest.approx(1.96, abs=1e-3)


@pytest.mark.parametrize("n", [6, 15, 40])
@pytest.mark.parametrize(
    ("wins", "ties"), [(0.5, 0.2), (0.3, 0.6), (0.05, 0.9), (0.75, 0.2), (0.55, 0.0), (0.95, 0.04), (0.01, 0.04)]
)
def test_win_rates_with_ties_are_covered(wins, ties, n):
    """The interval covers 92.5 to 100% of 4000 samples each, as simulated apart from this."""
    drawn = np.random.default_rng(7).multinomial(n, [wins, ties, 1 - wins - ties], size=1000)
    inside = 0
    for counts, times in zip(*np.unique(drawn, axis=0, return_counts=True), strict=True):
        rate = win_rate_interval(*counts)
        inside += times * (rate.low <= wins + ties / 2 <= rate.high)
    assert inside / 1000 >= 0.9


def test_one_verdict_an_item_has_the_interval_of_a_win_rate():
    points = [1.0] * 7 + [0.5] * 3 + [0.0] * 4
    assert clustered_win_rate_interval(points, range(14)) == win_rate_interval(7, 3, 4)
    assert clustered_win_rate_interval([], []).value is None
    assert clustered_win_rate_interval([1.0, 0.0], ["q", "q"]) == bootstrap.Estimate(value=0.5, n=2)


@pytest.mark.parametrize("points", [[1.0] * 7 + [0.5] * 3 + [0.0] * 4, [1.0] * 14])
def test_verdicts_that_repeat_those_of_their_item_narrow_nothing(points):
    once, again = (
        clustered_win_rate_interval(points, range(14)),
        clustered_win_rate_interval(points * 3, [*range(14)] * 3),
    )
    assert (again.value, again.n) == (once.value, 3 * once.n)
    assert again.low <= once.low < once.high <= again.high
    assert again.high - again.low < 1.3 * (once.high - once.low)


def test_verdicts_of_an_item_that_are_independent_count_in_full():
    random = np.random.default_rng(1)
    points = random.integers(0, 2, 400).astype(float)
    clustered = clustered_win_rate_interval(points, np.repeat(np.arange(200), 2).tolist())
    alone = win_rate_interval((points == 1).sum(), 0, (points == 0).sum())
    assert clustered.high - clustered.low == pytest.approx(alone.high - alone.low, rel=0.1)


@pytest.mark.parametrize("verdicts", [2, 6])
def test_win_rates_of_several_verdicts_an_item_are_covered(verdicts):
    """The interval covers 92 to 98% of samples; it would cover 70 to 90% if verdicts were taken as independent."""
    random, inside = np.random.default_rng(6), 0
    items = np.repeat(np.arange(20), verdicts).tolist()
    for _ in range(500):
        leanings = 0.8 * random.normal(size=(20, 1)) + 0.6 * random.normal(size=(20, verdicts))
        interval = clustered_win_rate_interval((leanings > 0).astype(float).ravel(), items)
        inside += interval.low <= 0.5 <= interval.high
    assert inside / 500 >= 0.92
