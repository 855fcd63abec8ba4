"""Bradley-Terry against evalica's golden files, choix and known strengths. Ratios count, scales don't."""

from __future__ import annotations

import csv
from pathlib import Path

import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steerboard_statistics.bradley_terry import comparable, log_strengths, strengths
from steerboard_statistics.comparison import compare_pairs, compare_scores

GOLDEN = Path(__file__).parents[3] / "shared" / "data" / "evalica"

tables = st.integers(2, 5).flatmap(
    lambda m: st.lists(st.lists(st.integers(0, 6), min_size=m, max_size=m), min_size=m, max_size=m)
)


@pytest.mark.parametrize("name", ["food", "simple"])
def test_strengths_equal_evalicas_golden_ones(name):
    if not GOLDEN.exists():
        pytest.skip(f"needs evalica's golden files in {GOLDEN}")
    with (GOLDEN / f"{name}.csv").open() as file:
        games = list(csv.DictReader(file))
    with (GOLDEN / f"{name}-golden.csv").open() as file:
        golden = {
            row["item"]: float(row["score"]) for row in csv.DictReader(file) if row["algorithm"] == "bradley_terry"
        }
    values = {"left": 1.0, "right": 0.0, "tie": 0.5}
    rows = [(i, game["left"], game["right"], values[game["winner"]]) for i, game in enumerate(games)]
    rated = compare_pairs(rows, sorted(golden), resamples=200).bradley_terry
    ours = np.array([row.strength.value for row in rated])
    theirs = np.array([golden[row.entrant] for row in rated])
    assert ours / ours[0] == pytest.approx(theirs / theirs[0], rel=1e-4)
    assert np.log(ours).mean() == pytest.approx(0, abs=1e-9)


def test_strengths_equal_choix():
    wins = np.array([[0, 7, 9, 3], [2, 0, 5, 4], [1, 4, 0, 5], [2, 3, 6, 0]], dtype=float)
    games = [(a, b) for a in range(4) for b in range(4) for _ in range(int(wins[a, b]))]
    theirs = choix.ilsr_pairwise(4, games, alpha=0.0)
    assert np.log(strengths(wins)) == pytest.approx(theirs - theirs.mean(), abs=1e-6)


@given(tables)
@settings(max_examples=100, deadline=None)
def test_many_tables_at_once_give_the_strengths_of_each(rows):
    wins = np.array(rows, dtype=float)
    np.fill_diagonal(wins, 0)
    members = comparable(wins)
    single = log_strengths(wins[None])[0]
    if len(members) < len(wins):
        assert np.isnan(single).all()
    else:
        assert np.exp(single) == pytest.approx(strengths(wins), rel=1e-5)


@given(tables, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_order_of_the_entrants_does_not_matter(rows, random):
    wins = np.array(rows, dtype=float)
    np.fill_diagonal(wins, 0)
    order = list(range(len(wins)))
    random.shuffle(order)
    members = comparable(wins)
    if len(members) == len(wins):
        assert strengths(wins[np.ix_(order, order)]) == pytest.approx(strengths(wins)[order], rel=1e-5)


def test_two_entrants_have_the_ratio_of_their_wins():
    fitted = strengths(np.array([[0.0, 30.0], [10.0, 0.0]]))
    assert fitted[0] / fitted[1] == pytest.approx(3)


def test_who_won_everything_has_no_strength_and_does_not_change_the_others():
    among = np.array([[0.0, 6.0, 4.0], [2.0, 0.0, 3.0], [1.0, 4.0, 0.0]])
    wins = np.zeros((4, 4))
    wins[:3, :3] = among
    wins[3, :3] = 8
    fitted = strengths(wins)
    assert np.isnan(fitted[3])
    assert fitted[:3] == pytest.approx(strengths(among))


def test_intervals_are_over_items_and_none_where_resamples_often_have_no_strengths():
    random = np.random.default_rng(3)
    scores = random.normal([0.0, 0.3, 0.9], size=(120, 3))
    for row in compare_scores(scores, ["a", "b", "c"]).bradley_terry:
        assert row.strength.low < row.strength.value < row.strength.high
        assert row.strength.n == 120
    # One loss in twenty is missing from a third of the resamples, and then the winner's strength is infinite.
    swept = np.column_stack([np.r_[np.ones(19), 0.0], np.r_[np.zeros(19), 1.0]])
    best = compare_scores(swept, ["a", "b"]).bradley_terry[0].strength
    assert best.value == pytest.approx(np.sqrt(19))
    assert best.low is None is best.high


def test_known_strengths_are_covered():
    truth, inside, runs = np.array([1.0, 2.0, 3.0]), 0, 60
    truth = truth / np.exp(np.log(truth).mean())
    random = np.random.default_rng(11)
    for _ in range(runs):
        # Scores with Gumbel noise compare as in Bradley-Terry.
        scores = np.log(truth) + random.gumbel(size=(80, 3))
        rated = compare_scores(scores, ["a", "b", "c"], resamples=500).bradley_terry
        inside += sum(row.strength.low <= true <= row.strength.high for row, true in zip(rated, truth, strict=True))
    assert 0.90 <= inside / (3 * runs) <= 0.99
