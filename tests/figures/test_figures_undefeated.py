"""`steerboard figures` of models that never lost or never won, and of ties alone: no rating, and no interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import figures, printed, write


def games(question: int, model: str, *labels: str) -> dict[str, Any]:
    """The games of a question; the baseline is A in the first one."""
    row = {"uid": str(question), "model": model, "judge": "j", "baseline": "base"}
    return {**row, "games": [{"score": label} for label in labels]}


def test_undefeated_models_of_arena_hard_are_named_and_have_no_rating(tmp_path: Path) -> None:
    labels = {"best": ("B>A", "A>B"), "worst": ("A>B", "B>A"), "level": ("A>B", "A>B")}
    rows = [games(n, model, *said) for n in range(20) for model, said in labels.items()]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert computed["unrated"] == ["best", "worst"]
    rated = [(model["model"], model["win_rate"], model["rating"]) for model in computed["models"]]
    level = pytest.approx(50), pytest.approx(1000)
    assert rated == [("best", 100, None), ("base", *level), ("level", *level), ("worst", 0, None)]
    told = printed(computed)
    assert "no finite rating: best, worst" in told
    assert "best: has lost no game to base or a model of finite rating" in told
    assert "worst: has won no game against base" in told


def test_undefeated_models_of_battles_are_named(tmp_path: Path) -> None:
    rows = [{"model_a": "a", "model_b": "b", "winner": winner} for winner in ("model_a", "model_b") for _ in range(20)]
    rows += [{"model_a": "a", "model_b": "best", "winner": "model_b"}] * 20
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert (computed["unrated"], {model["model"] for model in computed["models"]}) == (["best"], {"a", "b"})
    assert "no finite rating: best" in printed(computed)


def test_ties_alone_have_no_interval(tmp_path: Path) -> None:
    battles = [{"model_a": "a", "model_b": b, "winner": "tie"} for b in "bc" for _ in range(20)]
    arena = [games(n, "m", "A=B", "A=B") for n in range(20)]
    for rows in (battles, arena):
        computed = figures(write(tmp_path / "a.jsonl", *rows))
        for model in computed["models"]:
            assert (model["rating"], model["low"], model["high"]) == (pytest.approx(1000), None, None)
    assert figures(write(tmp_path / "a.jsonl", *battles))["separability"] is None


def test_a_matrix_of_many_models_is_left_to_the_document(tmp_path: Path) -> None:
    rows = [
        {"id": f"{a}-{b}", "model_a": f"m{a}", "model_b": f"m{b}", "winner": "tie"} for a in range(60) for b in range(a)
    ]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert len(computed["matrix"]) == 60
    assert "the win rates of 60 models against each other are in --json" in printed(computed)
