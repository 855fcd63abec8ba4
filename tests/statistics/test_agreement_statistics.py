"""Agreement against published values, the krippendorff package, scikit-learn and scipy."""

from __future__ import annotations

import math

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steerboard_statistics.agreement import (
    alpha_interval,
    cohen_kappa,
    item_agreement,
    krippendorff_alpha,
    pair_signs,
    rank_correlation,
    source_agreement,
)
from steerboard_statistics.correlation import pearson, spearman

gap = math.nan
# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): four observers, twelve units, values missing.
FOUR_OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]
).T

ratings = st.tuples(st.integers(2, 30), st.integers(2, 5), st.integers(0, 2**32 - 1)).map(
    lambda given: np.where(
        np.random.default_rng(given[2]).random(given[:2]) < 0.3,
        math.nan,
        np.random.default_rng(given[2]).integers(1, 5, size=given[:2]),
    )
)
numbers = st.floats(-1e3, 1e3).map(lambda x: round(x, 1))


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example_with_four_observers(level, alpha):
    assert krippendorff_alpha(FOUR_OBSERVERS, level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_of_the_published_examples_with_two_observers():
    binary = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
    assert krippendorff_alpha(np.array(binary).T, "nominal") == pytest.approx(0.095, abs=5e-4)
    letters = [[ord(c) for c in "aabbdcccedda"], [ord(c) for c in "babbbccceddd"]]
    assert krippendorff_alpha(np.array(letters).T, "nominal") == pytest.approx(0.692, abs=5e-4)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@given(table=ratings)
@settings(max_examples=60, deadline=None)
def test_alpha_is_the_krippendorff_packages_with_gaps(level, table):
    ours = krippendorff_alpha(table, level)
    pairable = table[np.isfinite(table).sum(axis=1) >= 2]
    if len(set(pairable[np.isfinite(pairable)].tolist())) < 2:
        assert ours is None
    else:
        theirs = krippendorff.alpha(reliability_data=table.T, level_of_measurement=level)
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_alpha_of_half_ranks_and_of_shifted_ones():
    table = FOUR_OBSERVERS / 2
    assert krippendorff_alpha(table, "ordinal") == pytest.approx(krippendorff_alpha(FOUR_OBSERVERS, "ordinal"))
    assert krippendorff_alpha(FOUR_OBSERVERS + 1e6, "interval") == pytest.approx(0.849, abs=5e-4)


def test_alphas_interval_is_that_of_drawn_units():
    alpha = alpha_interval(FOUR_OBSERVERS, "interval")
    assert alpha.n == 11
    assert alpha.value == krippendorff_alpha(FOUR_OBSERVERS, "interval")
    random = np.random.default_rng(0)
    drawn = [krippendorff_alpha(FOUR_OBSERVERS[random.integers(0, 11, 11)], "interval") for _ in range(1500)]
    tail = 100 * (1 - stats.norm.cdf(math.sqrt(11 / 10) * stats.t.ppf(0.975, 10)))
    low, high = np.percentile(drawn, [tail, 100 - tail])
    assert (alpha.low, alpha.high) == (pytest.approx(low, abs=0.06), pytest.approx(high, abs=0.03))


def test_units_of_one_item_are_drawn_together():
    random = np.random.default_rng(2)
    table = np.repeat(random.integers(1, 5, size=(20, 2)).astype(float), 6, axis=0)
    apart = alpha_interval(table, "ordinal")
    together = alpha_interval(table, "ordinal", items=np.arange(120) // 6)
    assert (apart.n, together.n) == (120, 20)
    assert together.value == pytest.approx(apart.value)
    assert together.high - together.low > 1.8 * (apart.high - apart.low)


@pytest.mark.parametrize(
    "table", [np.zeros((0, 2)), np.zeros((0, 0)), [[1.0, gap], [gap, 2.0]], [[3.0, 3.0]] * 9, [[gap, gap]]]
)
def test_nothing_to_agree_on_has_no_alpha(table):
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha(table, level) is None
        assert alpha_interval(table, level).value is None


@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_kappa_is_scikit_learns(pairs):
    from sklearn.metrics import cohen_kappa_score  # slow to import, and every process collects this

    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    ours = cohen_kappa(a, b)
    if len({*a, *b}) == 1:
        assert ours is None
    else:
        assert ours == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


def test_kappa_leaves_out_what_one_did_not_label():
    assert cohen_kappa([1, -1, gap, 0], [1, -1, 1, gap]) == 1.0
    assert cohen_kappa([gap], [1.0]) is None
    assert cohen_kappa([], []) is None


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=40))
@settings(max_examples=100, deadline=None)
def test_correlations_are_scipys_ties_included(points):
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert rank_correlation(xs, ys) == (None, None)
        assert spearman(xs, ys) is None
        return
    rho, tau = rank_correlation(xs, ys)
    assert rho == spearman(xs, ys) == pytest.approx(stats.spearmanr(xs, ys).statistic, abs=1e-9)
    assert tau == pytest.approx(stats.kendalltau(xs, ys).statistic, abs=1e-9)
    assert pearson(xs, ys) == pytest.approx(stats.pearsonr(xs, ys).statistic, abs=1e-6)


def test_correlation_of_nothing_is_none():
    assert rank_correlation([], []) == (None, None)
    assert rank_correlation([1.0], [2.0]) == (None, None)
    assert rank_correlation([1.0, gap, 3.0], [1.0, 9.0, 0.0]) == (-1.0, -1.0)
    assert pearson([0.1 + 0.2, 0.3], [1.0, 2.0]) is None


def test_item_agreement_by_hand():
    # By item: a > b by both; one ties; opposite; both tie; one has no opinion.
    signs = pair_signs([[2, 1], [1, 1], [2, 1], [3, 3], [gap, 1]])
    other = pair_signs([[9, 5], [9, 5], [5, 9], [4, 4], [1, 2]])
    agreement = item_agreement(signs, other)
    assert agreement.value == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert agreement.n == 4
    assert item_agreement(np.zeros((0, 1)), np.zeros((0, 1))).value is None


def test_item_agreements_interval_is_over_items():
    random = np.random.default_rng(1)
    same = random.random(60) < 0.7
    signs = np.ones((60, 10))
    agreement = item_agreement(signs, np.where(same, 1.0, -1.0)[:, None] * signs)
    # Ten pairs of an item that always agree together tell no more than one.
    half = 1.96 * same.std() / math.sqrt(60)
    assert agreement.high - agreement.low == pytest.approx(2 * half, rel=0.15)


def test_agreeing_on_all_of_a_few_items_does_not_prove_it_of_others():
    agreement = item_agreement(np.ones((8, 3)), np.ones((8, 3)))
    assert (agreement.value, agreement.high, agreement.n) == (1, 1, 8)
    assert agreement.low == pytest.approx(0.6756, abs=1e-4)


def test_two_sources_on_the_same_items():
    random = np.random.default_rng(4)
    people = random.normal([0, 0.5, 1, 2], 1, size=(80, 4))
    judge = people + random.normal(size=(80, 4))
    judge[::7, 1] = gap
    agreement = source_agreement(people, judge)
    both = np.where(np.isfinite(judge), people, gap)
    means = np.nanmean(both, axis=0), np.nanmean(judge, axis=0)
    assert (agreement.spearman.value, agreement.kendall.value) == rank_correlation(*means)
    assert (agreement.entrants, agreement.items, agreement.item.n) == (4, 80, 80)
    assert agreement.spearman.low <= agreement.spearman.value <= agreement.spearman.high
    assert 0.6 < agreement.item.low < agreement.item.value < agreement.item.high < 0.9
    assert source_agreement(people, judge) == agreement
    assert source_agreement(people, -people).spearman.value == -1.0


def test_sources_without_common_items_agree_on_nothing():
    one, other = np.full((9, 3), gap), np.full((9, 3), gap)
    one[:4], other[4:] = 1.0, 2.0
    agreement = source_agreement(one, other)
    assert (agreement.spearman.value, agreement.kendall.value, agreement.item.value) == (None, None, None)
    assert (agreement.entrants, agreement.items) == (0, 0)
    # Win shares say nothing of signs that a source gives itself.
    signs = np.ones((9, 3))
    assert source_agreement(one, one, a_signs=signs, b_signs=signs).item.value == 1.0
