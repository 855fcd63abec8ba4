"""Ratings of many models: by a sparse design, in seconds, and of those whom a draw of battles cannot rate."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
import scipy

from steerboard_statistics.benchmarks import curvature
from steerboard_statistics.benchmarks.arena import leaderboard
from steerboard_statistics.benchmarks.arena_fit import design_of, fit
from steerboard_statistics.benchmarks.battles import PairedComparison


def test_many_models_are_rated_by_a_sparse_design_as_by_a_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    strengths = draw.normal(size=120)
    pairs = []
    for a, b in draw.integers(0, 120, (3000, 2)).tolist():
        if a != b:
            won = float(draw.random() < 1 / (1 + np.exp(strengths[b] - strengths[a])))
            pairs.append(PairedComparison(f"m{a}", f"m{b}", 0.5 if draw.random() < 0.1 else won))
    sparse = leaderboard(pairs, draws=20)
    monkeypatch.setattr(curvature, "_DENSE", 10_000)
    dense = leaderboard(pairs, draws=20)
    assert len(sparse.ratings) > 100
    for one, other in zip(sparse.ratings, dense.ratings, strict=True):
        assert one.rating == pytest.approx(other.rating, abs=1e-3)
        assert (one.low, one.high) == (pytest.approx(other.low, abs=0.05), pytest.approx(other.high, abs=0.05))


def test_sixteen_hundred_models_are_rated_in_seconds() -> None:
    draw = np.random.default_rng(4)
    pairs = [
        PairedComparison(f"m{a}", f"m{b}", float(won))
        for a, b, won in draw.integers(0, [1600, 1600, 2], (20_000, 3)).tolist()
    ]
    started = process_time()
    board = leaderboard(pairs)
    assert process_time() - started < 12
    assert len(board.ratings) > 1500


def test_models_that_meet_only_their_neighbours_are_rated_as_by_a_dense_design(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw may join the halves of such a ladder by a few battles, and put models thousands of points apart."""
    draw = np.random.default_rng(7)
    pairs = []
    for a, gap, first, tied in zip(
        *(draw.integers(0, 394, 8000), draw.integers(1, 6, 8000), draw.random(8000), draw.random(8000)), strict=True
    ):
        won = float(first < 1 / (1 + np.exp(0.1 * gap)))
        pairs.append(PairedComparison(f"m{a:03d}", f"m{a + gap:03d}", 0.5 if tied < 0.02 else won))
    sparse = leaderboard(pairs, draws=10)
    assert sparse.ratings[0].rating - sparse.ratings[-1].rating > 4000
    monkeypatch.setattr(curvature, "_DENSE", 10_000)
    dense = leaderboard(pairs, draws=10)
    for one, other in zip(sparse.ratings, dense.ratings, strict=True):
        assert (one.model, one.rating) == (other.model, pytest.approx(other.rating, abs=1e-6))
        assert (one.low, one.high) == (pytest.approx(other.low, abs=1e-6), pytest.approx(other.high, abs=1e-6))


def test_every_draw_of_a_ladder_reaches_its_maximum() -> None:
    """Each model has won at the maximum as much as its ratings predict, here 0.01 of a battle apart at most."""
    pairs = []
    for a in range(150):
        pairs += [PairedComparison(f"m{a:03d}", f"m{a + 1:03d}", value) for value in [1.0] * 9 + [0.0]]
    names = sorted({name for pair in pairs for name in (pair.a, pair.b)})
    design = design_of(pairs, np.ones(len(pairs)), names, [])
    counts = design.kinds.counts
    fitted = fit(design, design.kinds.weights(counts))
    assert np.ptp(fitted) > 300
    random, total = np.random.default_rng(1), int(counts.sum())
    weights = design.kinds.weights(random.multinomial(total, counts / total).astype(float))
    # One more win each way joins all models in the draw, too.
    weights += 0.5
    logs = fit(design, weights, fitted)
    expected = scipy.special.expit(design.rows @ logs)
    assert np.abs(design.rows.T @ (weights * (design.kinds.values - expected))).max() < 0.01


def test_a_model_without_a_rating_in_many_draws_has_no_interval_and_moves_no_other() -> None:
    """`rare` lost once in eight: a third of the draws have no loss of it, and no finite rating."""
    level = [PairedComparison("a", "b", value) for value in (1.0, 0.0)] * 60
    rare = [PairedComparison("rare", "a", 1.0)] * 7 + [PairedComparison("rare", "a", 0.0)]
    board = {rating.model: rating for rating in leaderboard([*level, *rare]).ratings}
    assert (board["rare"].low, board["rare"].high) == (None, None)
    alone = {rating.model: rating for rating in leaderboard(level).ratings}
    for name in "ab":
        rating, whole = board[name], alone[name]
        assert rating.low is not None
        assert rating.high is not None
        assert whole.low is not None
        assert whole.high is not None
        assert rating.high - rating.low < 6 * (whole.high - whole.low)
