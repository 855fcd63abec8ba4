"""Rows whose turn or prompt is unknown, and copies of rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import figures, invalid, pair, single, write
from figures.test_figures_length_control import C, annotations


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def test_two_turns_that_are_not_told_apart_are_no_figure(tmp_path: Path) -> None:
    rows = [single(n, 9 if turn == 1 else 3, turn=turn, tstamp=n + turn / 10) for n in range(80) for turn in (1, 2)]
    assert figures(write(tmp_path / "a.jsonl", *rows))["models"][0]["average"] == 6
    (model,) = invalid(write(tmp_path / "b.jsonl", *(without(row, "turn") for row in rows)))["models"]
    assert (model["average"], model["turns"]) == (None, None)
    assert "80 of an unknown turn" in model["reason"]
    # A turn that was lost is no first one.
    damaged = [{**row, "turn": None} if n % 10 == 0 else row for n, row in enumerate(rows)]
    computed = invalid(write(tmp_path / "c.jsonl", *damaged))
    assert computed["models"][0]["average"] is None
    assert "has no value in `turn`" in str(computed["bad"][0])
    # One turn needs no name, and a copy of a row is no other turn.
    alone = [without(row, "turn") for row in rows if row["turn"] == 1]
    assert figures(write(tmp_path / "d.jsonl", *alone, *alone))["models"][0]["average"] == 9


def test_rows_that_another_turn_took_are_no_figure(tmp_path: Path) -> None:
    rows = [single(n, 9 if turn == 1 else 3, turn=turn, tstamp=n + turn / 10) for n in range(80) for turn in (1, 2)]
    damaged = [{**row, "turn": 1} if row["question_id"] < 20 else row for row in rows]
    (model,) = invalid(write(tmp_path / "a.jsonl", *damaged))["models"]
    assert (model["average"], model["turns"]) == (None, None)
    assert "20 of an unknown turn" in model["reason"]
    # The newest rating counts of a judge that was asked again.
    again = [{**row, "score": 5, "tstamp": 1000} for row in rows[:60]]
    assert figures(write(tmp_path / "b.jsonl", *rows, *again))["models"][0]["n"] == 160
    # Where few of the questions have a second turn, none is missing.
    few = [row for row in rows if row["turn"] == 1 or row["question_id"] < 30]
    assert figures(write(tmp_path / "c.jsonl", *few, *again))["models"][0]["valid"]


def test_two_turns_of_pairs_that_are_not_told_apart_are_no_figure(tmp_path: Path) -> None:
    rows = [
        without(pair(n, winner, winner, tstamp=n + place / 10), "turn")
        for n in range(40)
        for place, winner in enumerate(("model_1", "model_2"))
    ]
    computed = invalid(write(tmp_path / "a.jsonl", *rows))
    assert {model["win_rate"] for model in computed["models"]} == {None}
    assert figures(write(tmp_path / "b.jsonl", *rows[::2]))["models"]


def test_one_place_of_many_prompts_is_no_place(published: Path, tmp_path: Path) -> None:
    rows = [without(row, "instruction") for row in annotations(published, "claude-2")]
    short = [{**row, "len_1": len(row["output_1"]), "len_2": len(row["output_2"])} for row in rows]
    (mine,) = invalid(write(tmp_path / "a.jsonl", *({**row, "index": 0} for row in short)))["models"]
    assert (mine["win_rate"], mine["n"]) == (None, 1)
    assert "with the place of others" in mine["reason"]
    numbered = [{**row, "index": n} for n, row in enumerate(short)]
    (mine,) = figures(write(tmp_path / "b.jsonl", *numbered, *numbered))["models"]
    assert mine["n"] == 805


def test_the_numbers_of_shuffled_rows_are_refused_or_pointed_out(published: Path, tmp_path: Path) -> None:
    folder = published / "alpaca_eval"
    control = ["--difficulty", folder / "instruction_difficulty_recovered.csv", "--c", C]
    control += ["--gamed", folder / "df_gamed_reconstructed.csv"]
    rows = annotations(published, "claude-2")
    (mine,) = figures(write(tmp_path / "a.jsonl", *({**row, "index": n} for n, row in enumerate(rows))), *control)[
        "models"
    ]
    assert mine["length_controlled"] == pytest.approx(28.155, abs=0.01)
    assert "note" not in mine
    shuffled = [{**row, "index": n} for n, row in enumerate(random.Random(3).sample(rows, len(rows)))]
    (mine,) = figures(write(tmp_path / "b.jsonl", *shuffled), *control)["models"]
    assert mine["length_controlled"] is None
    assert "by these, their data sets are mixed" in mine["why"]
    (mine,) = figures(write(tmp_path / "c.jsonl", *(without(row, "dataset") for row in shuffled)), *control)["models"]
    assert "the rows' own numbers are taken for the benchmark's prompts" in mine["note"]


def test_a_battle_that_is_there_twice_counts_once_by_its_id(tmp_path: Path) -> None:
    draw = random.Random(1)
    rows = [
        {"model_a": "x", "model_b": "y", "winner": draw.choice(("model_a", "model_b", "tie")), "battle_id": n}
        for n in range(120)
    ]
    once = figures(write(tmp_path / "a.jsonl", *rows))
    twice = figures(write(tmp_path / "b.jsonl", *rows, *rows))
    assert (once["n"], twice["n"], twice["superseded"]) == (120, 120, 120)
    assert twice["models"] == once["models"]
    # Without ids, equal rows are different battles, also of one second.
    bare = [without(row, "battle_id") | {"tstamp": 1000.5} for row in rows]
    assert figures(write(tmp_path / "c.jsonl", *bare, *bare))["n"] == 240
