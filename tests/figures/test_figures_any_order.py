"""The same rows give the same figures in any order, intervals included."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from figures.figures_runner import annotation, pair, single, write
from steerboard_figures.judgment_figures import figures

Row = dict[str, Any]

_LABELS = ["A>>B", "A>B", "A=B", "B>A", "B>>A"]


def singles(drawn: random.Random) -> list[Row]:
    return [
        single(question, drawn.randint(1, 10), model=model, turn=turn)
        for question in range(12)
        for model in "abc"
        for turn in (1, 2)
    ]


def pairs(drawn: random.Random) -> list[Row]:
    winners = ["model_1", "model_2", "tie"]
    return [
        pair(question, drawn.choice(winners), drawn.choice(winners), turn=turn, model_2=rival)
        for question in range(12)
        for turn in (1, 2)
        for rival in "bc"
    ]


def games(drawn: random.Random) -> list[Row]:
    return [
        {"uid": str(q), "model": model, "judge": "gpt", "games": [{"score": drawn.choice(_LABELS)} for _ in range(2)]}
        for q in range(12)
        for model in "ab"
    ]


def battles(drawn: random.Random) -> list[Row]:
    rows = []
    for moment in range(40):
        a, b = drawn.sample("abc", 2)
        words = {f"sum_assistant_{side}_tokens": drawn.randint(1, 400) for side in "ab"}
        winner = drawn.choice(["model_a", "model_b", "tie"])
        rows.append({"model_a": a, "model_b": b, "winner": winner, "tstamp": moment, "conv_metadata": words})
    return rows


def annotations(drawn: random.Random) -> list[Row]:
    return [annotation(number, 1 + drawn.random(), index=number) for number in range(40)]


def annotations_without_places(drawn: random.Random) -> list[Row]:
    rows = [annotation(number, 1 + drawn.random() ** 0.5) for number in range(40)]
    return [{**row, "output_2": "x" * drawn.randint(1, 400)} for row in rows]


def alike(one: Any, other: Any) -> None:
    """Equal, except for the last digits of sums."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            alike(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            alike(left, right)
    else:
        assert other == (pytest.approx(one, rel=1e-6, abs=1e-9) if isinstance(one, float) else one)


@pytest.mark.parametrize("make", [singles, pairs, games, battles, annotations, annotations_without_places])
@settings(max_examples=2, deadline=None)
@given(content=st.integers(0, 10**6), order=st.integers(0, 10**6))
def test_rows_in_any_order_give_the_same_figures(
    make: Callable[[random.Random], list[Row]], content: int, order: int
) -> None:
    rows = make(random.Random(content))
    shuffled = random.Random(order).sample(rows, len(rows))
    with TemporaryDirectory() as folder:
        first, second = (
            figures([write(Path(folder) / name, *given)])
            for name, given in (("first.jsonl", rows), ("second.jsonl", shuffled))
        )
    assert first["models"]
    alike(first, second)
