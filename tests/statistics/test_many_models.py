"""Ratings of many models: by a sparse design, in seconds, and of those whom a draw of battles cannot rate."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from steerboard_statistics.benchmarks import arena_fit
from steerboard_statistics.benchmarks.arena import leaderboard
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
    monkeypatch.setattr(arena_fit, "_DENSE", 10_000)
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
    assert process_time() - started < 30
    assert len(board.ratings) > 1500


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
