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
from steerboard_figures.judgment_figures import Options, figures

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


def battles_of_one_second(drawn: random.Random) -> list[Row]:
    """The last two of forty-one are in one second, which leaves an order of time."""
    rows = without(battles(drawn), "conv_metadata")
    return [*rows, {**rows[0], "tstamp": rows[-1]["tstamp"]}]


def battles_without_times(drawn: random.Random) -> list[Row]:
    return without(battles(drawn), "conv_metadata", "tstamp")


def battles_told_twice(drawn: random.Random) -> list[Row]:
    """One of forty battles has another verdict in a second row, and no time orders the two."""
    rows = [{**row, "id": number} for number, row in enumerate(battles_without_times(drawn))]
    return rows + [{**row, "winner": "tie" if row["winner"] == "model_a" else "model_a"} for row in rows[:1]]


def without(rows: list[Row], *names: str) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def ratings_told_twice(drawn: random.Random) -> list[Row]:
    rows = [single(question, drawn.randint(1, 9)) for question in range(60)]
    return rows + [{**row, "score": row["score"] + 1} for row in rows[:2]]


def pairs_told_twice(drawn: random.Random) -> list[Row]:
    rows = [pair(question, drawn.choice(["model_1", "tie"]), "model_1") for question in range(60)]
    return rows + [{**row, "g1_winner": "model_2"} for row in rows[:2]] + [{**rows[3], "g1_winner": "error"}]


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


@pytest.mark.parametrize(
    "make",
    [
        singles,
        pairs,
        games,
        battles,
        battles_of_one_second,
        battles_without_times,
        battles_told_twice,
        ratings_told_twice,
        pairs_told_twice,
        annotations,
        annotations_without_places,
    ],
)
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


@pytest.mark.parametrize(
    ("make", "ordered"), [(battles, True), (battles_of_one_second, True), (battles_without_times, False)]
)
def test_elo_needs_battles_in_an_order_of_time(
    make: Callable[[random.Random], list[Row]], ordered: bool, tmp_path: Path
) -> None:
    board = figures([write(tmp_path / "a.jsonl", *make(random.Random(3)))])
    assert {model["elo"] is not None for model in board["models"]} == {ordered}


@pytest.mark.parametrize("repeats", [None, "first", "last"])
def test_two_figures_of_one_model_on_a_leaderboard_need_a_decision(tmp_path: Path, repeats: Any) -> None:
    rows = [f"m{number},{number}" for number in range(8)]
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, more in zip(paths, (["m7,-90"], ["m7,7"]), strict=True):
        path.write_text("\n".join(["model,score", *rows, *more]))
    board = figures(paths, "leaderboards", Options(repeats=repeats))
    assert board["valid"] == (repeats is not None)
    if repeats is None:
        assert board["spearman"] is None
        assert "--repeats first or last decides" in board["reasons"][0]
    else:
        assert (board["spearman"] == pytest.approx(1)) == (repeats == "first")
