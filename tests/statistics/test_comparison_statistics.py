"""One source's comparison of the entrants: by hand, against scipy and statsmodels, and with parts missing."""

from __future__ import annotations

import itertools
import json
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steerboard_statistics.comparison import compare, compare_pairs, compare_scores
from steerboard_statistics.paired import holm, wilcoxon_p, win_rate
from steerboard_statistics.ranks import friedman, rank_scores, rank_shares

NAMES = ["a", "b", "c", "d", "e"]

score_tables = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(1, 4).map(float) | st.just(math.nan), min_size=width, max_size=width), max_size=25
    ).map(lambda rows: np.array(rows, dtype=float).reshape(len(rows), width))
)


def test_means_pairs_and_the_winner_by_hand():
    items = [{"dt": 3.0, "sft": 1.0, "base": 2.0}] * 9 + [{"dt": 2.5, "sft": 2.5, "base": 1.0}] * 3
    comparison = compare(items, ["dt", "sft", "base"])
    assert comparison.items == 12
    assert [row.mean.value for row in comparison.scores] == pytest.approx([2.875, 1.375, 1.75])
    pair = comparison.pairs[0]
    assert (pair.a, pair.b, pair.wins, pair.ties, pair.losses) == ("dt", "sft", 9, 3, 0)
    assert pair.win_rate.value == pytest.approx(10.5 / 12)
    assert pair.difference.value == pytest.approx(1.5)
    assert pair.p == pytest.approx(2 / 2**9)
    assert (pair.p_holm, pair.significant) == (pytest.approx(2 * 2 / 2**9), True)
    assert comparison.winner == "dt"
    assert comparison.why == (
        "dt is significantly better than every rival; the closest is sft (+1.5 on average, p = 0.0078 after Holm over "
        "3 pairs)."
    )
    assert comparison.friedman is not None
    assert comparison.friedman.p < 0.01


def test_the_sentence_names_the_rival_that_prevents_a_winner_and_its_p():
    random = np.random.default_rng(5)
    scores = random.normal([2.0, 1.9, 0.0], size=(40, 3))
    comparison = compare_scores(scores, ["dt", "dpo", "sft"])
    p = next(row.p_holm for row in comparison.pairs if (row.a, row.b) == ("dt", "dpo"))
    best = max(comparison.scores, key=lambda row: row.mean.value)
    other = {"dt": "dpo", "dpo": "dt"}[best.entrant]
    assert comparison.winner is None
    assert comparison.why == (
        f"No winner: {best.entrant} has the highest mean ({best.mean.value:.3g}), but it does not differ significantly "
        f"from {other}: p = {p:.2g} after Holm over 3 pairs."
    )


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([], "No winner: nothing has been compared yet."),
        ([{"a": 2.0, "b": 1.0}] * 5, "highest mean (2), but only 5 items compare it with b, and a test needs 6."),
        ([{"a": 2.0}] * 3 + [{"b": 1.0}] * 3, "highest mean (2), but no item compares it with b."),
        ([{"a": 2.0, "b": 2.0}] * 9, "No winner: a and b share the highest mean, 2."),
    ],
)
def test_why_there_is_no_winner(items, why):
    comparison = compare(items, ["a", "b"])
    assert comparison.winner is None
    assert comparison.why.endswith(why)


def test_a_mean_of_a_few_large_differences_against_the_ranks_makes_no_winner():
    """100 small wins of a, 26 large ones of b: p is small since the ranks favour a, and b has the higher mean."""
    differences = np.array([1.0] * 100 + [-4.0] * 26)
    comparison = compare_scores(np.column_stack([5 + differences / 2, 5 - differences / 2]), ["a", "b"])
    (pair,) = comparison.pairs
    assert pair.p_holm < 0.05
    assert pair.difference.value < 0
    assert not pair.significant
    assert comparison.winner is None
    assert comparison.why.endswith("but the signed ranks favour a: a few large differences make the mean.")
    clear = compare_scores(np.column_stack([5 + differences, 5 - differences])[:100], ["a", "b"])
    assert (clear.winner, clear.pairs[0].significant) == ("a", True)


def test_one_entrant_has_a_mean_and_no_rival():
    comparison = compare([{"a": float(x)} for x in range(20)], ["a"])
    assert comparison.scores[0].mean.value == 9.5
    assert comparison.pairs == []
    assert comparison.friedman is None
    assert (comparison.winner, comparison.why) == (None, "No winner: a has no rival.")


def test_an_average_that_differs_in_the_last_bit_is_a_tie():
    assert 0.1 + 0.2 != 0.3
    comparison = compare([{"a": 0.1 + 0.2, "b": 0.3}] * 10, ["a", "b"])
    assert (comparison.pairs[0].wins, comparison.pairs[0].ties) == (0, 10)
    assert comparison.pairs[0].p == 1.0


def test_an_entrant_missing_on_items_is_compared_on_the_others():
    items = [{"a": 3.0, "b": 1.0}, {"a": 1.0, "b": None}, {"a": 5.0, "b": math.nan}, {"a": 2.0, "b": 2.0}, {}]
    comparison = compare(items, ["a", "b"])
    assert [(row.mean.value, row.mean.n) for row in comparison.scores] == [(2.75, 4), (1.5, 2)]
    assert (comparison.pairs[0].wins, comparison.pairs[0].ties, comparison.pairs[0].losses) == (1, 1, 0)
    assert comparison.pairs[0].difference.value == 1.0
    assert comparison.items == 4


@given(score_tables)
@settings(max_examples=80, deadline=None)
def test_nothing_is_ever_nan_or_infinite(scores):
    names = NAMES[: scores.shape[1]]
    comparison = compare_scores(scores, names, resamples=50)
    json.dumps(comparison.model_dump(), allow_nan=False)
    rows = [(i, a, b, float(v)) for i, v in enumerate(scores[:, 0] / 4) for a, b in itertools.combinations(names, 2)]
    json.dumps(compare_pairs(rows, names, resamples=50).model_dump(), allow_nan=False)


@given(score_tables, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_items_and_entrants_changes_no_figure_but_the_draws(scores, random):
    names = NAMES[: scores.shape[1]]
    order, places = list(range(len(scores))), list(range(len(names)))
    random.shuffle(order)
    random.shuffle(places)
    given = compare_scores(scores, names, resamples=50)
    other = compare_scores(scores[order][:, places], [names[p] for p in places], resamples=50)
    assert given.winner == other.winner
    assert {r.entrant: r.mean.value for r in given.scores} == pytest.approx(
        {r.entrant: r.mean.value for r in other.scores}
    )
    turned = {(row.a, row.b): row for row in other.pairs}
    for row in given.pairs:
        same = turned.get((row.a, row.b))
        counts = (same.wins, same.losses) if same else (turned[row.b, row.a].losses, turned[row.b, row.a].wins)
        mirror = same or turned[row.b, row.a]
        assert (row.wins, row.losses, row.ties) == (*counts, mirror.ties)
        assert (row.p, row.p_holm) == (pytest.approx(mirror.p), pytest.approx(mirror.p_holm))


def test_the_same_seed_gives_the_same_report():
    scores = np.random.default_rng(0).integers(1, 6, size=(40, 4))
    assert compare_scores(scores, NAMES[:4], seed=3) == compare_scores(scores, NAMES[:4], seed=3)
    assert compare_scores(scores, NAMES[:4], seed=3) != compare_scores(scores, NAMES[:4], seed=4)


def test_800_items_of_8_entrants_take_less_than_a_second_and_50000_pairs_less_than_two():
    random = np.random.default_rng(0)
    names = [f"e{i}" for i in range(8)]
    items = [dict(zip(names, row, strict=True)) for row in random.normal(size=(800, 8)).round(1).tolist()]
    begun = time.process_time()
    compare(items, names)
    assert time.process_time() - begun < 1
    rows = [(i, a, b, v) for i in range(1786) for a, b in itertools.combinations(names, 2) for v in (1.0,)]
    begun = time.process_time()
    assert compare_pairs(rows, names).items == 1786
    assert time.process_time() - begun < 2


def test_the_pairwise_part_alone():
    scores = np.random.default_rng(0).integers(1, 6, size=(40, 3))
    whole, part = (compare_scores(scores, NAMES[:3], pairwise_only=only) for only in (False, True))
    assert (part.friedman, part.bradley_terry) == (None, [])
    assert (part.scores, part.pairs, part.winner) == (whole.scores, whole.pairs, whole.winner)


# Verdicts on pairs


def test_verdicts_in_both_orders_are_averaged_and_contradictions_are_ties():
    rows = [
        (1, "a", "b", 1.0),
        (1, "b", "a", 0.0),
        (2, "a", "b", 1.0),
        (2, "b", "a", 1.0),
        (3, "b", "a", 1.0),
        (4, "a", "b", 0.8),
        (5, "a", "x", 1.0),
        (6, "a", "b", math.nan),
    ]
    comparison = compare_pairs(rows, ["a", "b", "c"])
    assert len(comparison.pairs) == 1
    pair = comparison.pairs[0]
    assert (pair.a, pair.b, pair.wins, pair.ties, pair.losses) == ("a", "b", 2, 1, 1)
    assert pair.win_rate.value == 2.5 / 4
    assert pair.difference.value == pytest.approx((1 + 0 - 1 + 0.6) / 4)
    assert [row.mean.value for row in comparison.scores] == [pytest.approx(2.3 / 4), pytest.approx(1.7 / 4), None]
    assert (comparison.items, comparison.friedman) == (4, None)


def test_against_a_baseline_only_nobody_wins_since_rivals_never_met():
    rows = [(i, name, "base", 1.0 if i % 9 else 0.0) for i in range(60) for name in ("dt", "dpo")]
    comparison = compare_pairs(rows, ["dt", "dpo", "base"])
    assert [(row.a, row.b, row.significant) for row in comparison.pairs] == [
        ("dt", "base", True),
        ("dpo", "base", True),
    ]
    assert comparison.winner is None
    only = compare_pairs([row for row in rows if row[1] == "dt"], ["dt", "base"])
    assert only.winner == "dt"


def test_win_shares_average_an_items_pairs_first():
    rows = [(1, "a", "b", 1.0), (1, "a", "c", 0.0), (2, "a", "b", 1.0)]
    assert compare_pairs(rows, ["a", "b", "c"]).scores[0].mean.value == pytest.approx((0.5 + 1) / 2)


# Tests of significance


@given(st.lists(st.integers(-5, 5), min_size=40, max_size=70) | st.lists(st.floats(-9, 9), min_size=14, max_size=20))
@settings(max_examples=100, deadline=None)
def test_wilcoxon_is_scipys_with_ties_left_out(differences):
    untied = [d for d in differences if d]
    if len(untied) > 13 and min(map(abs, untied)) > 1e-9:
        assert wilcoxon_p(differences) == pytest.approx(stats.wilcoxon(differences).pvalue, abs=1e-12)


@given(st.lists(st.integers(-4, 4), min_size=6, max_size=8))
@settings(max_examples=30, deadline=None)
def test_for_few_items_wilcoxon_is_over_all_signs(differences):
    sizes = stats.rankdata([abs(d) for d in differences if d])
    seen = sum(rank for rank, d in zip(sizes, [d for d in differences if d], strict=True) if d > 0)
    sums = [
        sum(rank for rank, up in zip(sizes, signs, strict=True) if up)
        for signs in itertools.product((0, 1), repeat=len(sizes))
    ]
    tails = [sum(s <= seen for s in sums), sum(s >= seen for s in sums)]
    assert wilcoxon_p(differences) == pytest.approx(min(2 * min(tails) / len(sums), 1.0))


def test_a_few_untied_items_among_many_ties_are_tested_exactly_too():
    assert wilcoxon_p([0.0] * 30 + [1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 2**5)
    assert wilcoxon_p([0.0] * 30) == 1.0
    tied = [1, 1, -1, 2, 2, 3, -3, 4, 0, 0, 5]
    assert wilcoxon_p(tied) == pytest.approx(stats.wilcoxon(tied).pvalue)


def test_wilcoxon_needs_six_items():
    assert wilcoxon_p([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert wilcoxon_p([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == pytest.approx(2 / 64)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
@settings(max_examples=10, deadline=None)
def test_holm_is_statsmodels(ps):
    from statsmodels.stats.multitest import multipletests  # slow to import, and every process collects this

    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


def test_holm_counts_only_what_was_tested():
    assert holm([None, 0.01, None, 0.04]) == [None, 0.02, None, 0.04]
    assert holm([]) == []


@given(st.integers(3, 6).flatmap(lambda k: st.lists(st.lists(st.integers(1, 4), min_size=k, max_size=k), min_size=2)))
@settings(max_examples=100, deadline=None)
def test_friedman_is_scipys(rows):
    result = friedman(rows)
    if all(len(set(row)) == 1 for row in rows):
        assert result is None
    else:
        expected = stats.friedmanchisquare(*np.array(rows).T)
        assert result.statistic == pytest.approx(expected.statistic, abs=1e-9)
        assert result.p == pytest.approx(expected.pvalue, abs=1e-9)
        assert (result.items, result.entrants) == (len(rows), len(rows[0]))


def test_friedman_is_over_complete_items_and_needs_three_entrants_and_two_items():
    complete = [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [2.0, 1.0, 3.0]]
    assert friedman([*complete, [9.0, math.nan, 1.0]]) == friedman(complete)
    assert friedman(complete[:1]) is None
    assert friedman([[1.0, 2.0]] * 9) is None
    assert friedman(np.zeros((0, 3))) is None


# Ranks


def test_a_rank_scores_n_plus_one_minus_it_and_ties_share_the_average():
    assert rank_scores([1, 2, 3, 4, 5]).tolist() == [5, 4, 3, 2, 1]
    assert rank_scores([1, 1, 2]).tolist() == rank_scores([1, 1, 3]).tolist() == [2.5, 2.5, 1]
    assert rank_scores([[2, 1], [1, 1]]).tolist() == [[1, 2], [1.5, 1.5]]
    np.testing.assert_equal(rank_scores([2, math.nan, 1]), [1, math.nan, 2])


@given(st.lists(st.integers(1, 8), min_size=1, max_size=8))
@settings(deadline=None)
def test_rank_scores_have_the_same_sum_whatever_the_ties(ranks):
    n = len(ranks)
    assert rank_scores(ranks).sum() == pytest.approx(n * (n + 1) / 2)


def test_shares_of_ranks_are_split_where_entrants_share_places():
    shares, counted = rank_shares([[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, math.nan, 2.0]])
    assert shares[0].tolist() == pytest.approx([1.5 / 3, 1.5 / 3, 0])
    assert shares[1].tolist() == pytest.approx([0.25, 0.75, 0])
    assert shares[2].tolist() == pytest.approx([1 / 3, 0, 2 / 3])
    assert counted == [3, 2, 3]


def test_a_tie_is_half_a_win():
    assert win_rate([1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 5.0, 4.0]) == 0.5
