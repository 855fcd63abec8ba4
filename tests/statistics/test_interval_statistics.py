"""Intervals against scipy, statsmodels and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from steerboard_statistics import bootstrap
from steerboard_statistics.bootstrap import MOST_GROUPS, Resamples, mean_interval, ratio_interval, tail_share
from steerboard_statistics.proportions import proportion_interval, win_rate_interval

finite = st.floats(-1e6, 1e6)


def test_for_many_items_the_interval_is_scipys_percentile_bootstrap():
    values = np.random.default_rng(0).gamma(2.0, size=150)
    ours = Resamples(150, 20_000, seed=1).interval(values.tolist())
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert ours.mean == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.high, abs=0.01)


def test_for_few_items_it_is_as_wide_as_students():
    values = stats.norm.ppf((np.arange(20) + 0.5) / 20)
    found = mean_interval(values, resamples=20_000)
    half = stats.t.ppf(0.975, 19) * values.std(ddof=1) / math.sqrt(20)
    assert found.high == pytest.approx(half, rel=0.03)
    assert found.low == pytest.approx(-half, rel=0.03)
    assert found.high > 1.04 * np.quantile(Resamples(20, 20_000).means(values[:, None]), 0.975)


def test_the_tail_that_is_cut_off_grows_to_two_and_a_half_percent():
    assert tail_share(10) < tail_share(40) < tail_share(1000) < 0.025
    assert tail_share(10**6) == pytest.approx(0.025, abs=1e-6)


def test_resamples_are_repeatable_and_shared_between_entrants():
    values = [0.0, 1.0, 4.0, 2.0]
    assert Resamples(4, 500, 3).interval(values) == Resamples(4, 500, 3).interval(values)
    assert Resamples(4, 500, 3).interval(values) != Resamples(4, 500, 4).interval(values)
    shared = Resamples(4, 500, 3)
    assert shared.interval([v + 10 for v in values]).low - 10 == pytest.approx(shared.interval(values).low)


def test_each_resample_has_as_many_items_as_there_are():
    drawn = Resamples(37, 1200, 5).sums(np.ones((37, 1)))
    assert drawn.shape == (1200, 1)
    assert (drawn == 37).all()


def test_very_many_items_are_drawn_in_groups_with_the_same_interval():
    values = np.random.default_rng(1).exponential(size=3 * MOST_GROUPS + 1)
    found = mean_interval(values)
    half = 1.96 * values.std(ddof=1) / math.sqrt(values.size)
    assert found.n == values.size
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * half, rel=0.08)


@pytest.mark.parametrize("n", range(8))
def test_too_few_items_have_a_mean_and_no_interval(n):
    found = mean_interval(np.arange(n))
    assert (found.n, found.low, found.high) == (n, None, None)
    assert found.value == (None if n == 0 else (n - 1) / 2)


@given(st.lists(finite | st.just(math.nan), max_size=30))
@settings(max_examples=100, deadline=None)
def test_an_interval_holds_its_mean_and_is_never_nan(values):
    found = mean_interval(values, resamples=100)
    known = [v for v in values if math.isfinite(v)]
    assert found.n == len(known)
    if found.low is not None and found.high is not None and found.value is not None:
        assert min(known) - 1e-6 <= found.low <= found.value <= found.high <= max(known) + 1e-6
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
        found = mean_interval(random.choice([-1.0, 0.0, 1.0], 10, p=[0.05, 0.8, 0.15]), seed=seed, resamples=400)
        if found.low is not None:
            inside.append(found.low <= 0.1 <= found.high)
    assert 300 < len(inside) < 400
    assert np.mean(inside) >= 0.85


def test_a_ratio_is_of_means_on_the_same_items():
    top, bottom = np.arange(10, 30, dtype=float), np.full(20, 10.0)
    found = ratio_interval([*top, math.nan], [*bottom, 1.0])
    assert found.value == pytest.approx(1.95)
    assert found.n == 20
    assert found.low == pytest.approx(mean_interval(top).low / 10)
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
    found = proportion_interval(successes, n)
    assert found.value == successes / n
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


def test_a_clean_sweep_of_three_proves_nothing_and_none_has_no_share():
    found = proportion_interval(3, 3)
    assert found.value == 1.0
    assert found.low < 0.5
    assert proportion_interval(0, 0) == bootstrap.Estimate(value=None, n=0)


def test_ties_narrow_the_interval_but_a_few_of_them_do_not_close_it():
    plain, tied = proportion_interval(10, 20), win_rate_interval(0, 20, 0)
    assert plain.low < tied.low < 0.5 < tied.high < plain.high
    assert tied.high - tied.low > 0.1


def test_a_win_rate_with_ties_has_tangos_interval():
    """The data are of patients before and after a transplantation (Bentur et al. 2009), as Fagerland, Lydersen and
    Laake give it in "Recommended tests and confidence intervals for paired binomial proportions" (Statistics in
    Medicine 33, 2014)."""
    found = win_rate_interval(1, 13, 7)
    assert (2 * found.low - 1, 2 * found.high - 1) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert (found.value, found.n) == (pytest.approx(7.5 / 21), 21)


@pytest.mark.parametrize(("wins", "ties", "losses"), [(48, 460, 41), (3, 2, 1), (0, 30, 4), (9, 1, 0)])
def test_the_ends_of_a_win_rate_are_where_the_score_test_rejects(wins, ties, losses):
    """With the share of losses that makes the counts most likely by maximising their likelihood."""
    n, found = wins + ties + losses, win_rate_interval(wins, ties, losses)
    for end in (found.low, found.high):
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
    """In 92.5 to 100% of 4000 samples each, as simulated apart from this."""
    drawn = np.random.default_rng(7).multinomial(n, [wins, ties, 1 - wins - ties], size=1000)
    inside = 0
    for counts, times in zip(*np.unique(drawn, axis=0, return_counts=True), strict=True):
        found = win_rate_interval(*counts)
        inside += times * (found.low <= wins + ties / 2 <= found.high)
    assert inside / 1000 >= 0.9
