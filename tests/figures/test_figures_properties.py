"""Whatever happens to a published file, a figure of it is right, or marked invalid, or refused."""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from figures.figures_runner import pair, write
from figures.mutations import CHANGES, Change, Row, changed, latest, lost_share, mutated
from steerboard_figures.benchmark_files.length_control import LengthControl
from steerboard_figures.benchmark_files.tables import read_difficulty, read_gamed, read_weights
from steerboard_figures.judgment_figures import Options, figures


@given(CHANGES)
@mutated
def test_single_answers(published: Path, tmp_path: Path, changes: list[Change]) -> None:
    lines = (published / "fastchat" / "mt_bench_single_phi3dpo.jsonl").read_text().splitlines()
    whole = [{key: value for key, value in json.loads(line).items() if key != "judgment"} for line in lines]
    rows = changed(whole, changes, lambda row: {**row, "score": -1}, lambda row: {**row, "turn": row["turn"]})
    if not rows:
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "fastchat_single", Options())
    kept = latest(rows, lambda row: (row["question_id"], row["turn"]), lambda row: row["score"] != -1)
    lost = lost_share(rows, kept, lambda row: row["score"] != -1)
    models = {model["model"]: model for model in computed["models"]}
    # Turns, and categories of ten questions each, have to hold as well.
    parts: dict[str, list[bool]] = {}
    for (question, turn), row in kept.items():
        for part in (f"turn {turn}", f"category {(question - 81) // 10}"):
            parts.setdefault(part, []).append(row["score"] == -1)
    assert computed["valid"] == (lost <= 0.05 and all(sum(part) <= 0.05 * len(part) for part in parts.values()))
    if computed["valid"]:
        scores = [row["score"] for row in kept.values() if row["score"] != -1]
        assert models["phi-3-dpo"]["average"] == pytest.approx(sum(scores) / len(scores))
        assert models["phi-3-dpo"]["n"] == len(scores)
    else:
        assert all((model["average"] is None) == (lost > 0.05) for model in models.values())


@given(CHANGES, st.sampled_from([0.02, 0.2, 0.8]), st.sampled_from(["turn", "lost", "text"]), st.integers(0, 999))
@example([], 0.2, "turn", 0)
@mutated
def test_turns(published: Path, tmp_path: Path, changes: list[Change], share: float, done: str, seed: int) -> None:
    """Wherever a figure is given, hardly a row of a turn was taken for one of another."""
    lines = (published / "fastchat" / "mt_bench_single_phi3dpo.jsonl").read_text().splitlines()
    whole = [{**(row := json.loads(line)), "was": row["turn"]} for line in lines]
    rows, draw = changed(whole, changes, lambda row: {**row, "score": -1}, lambda row: row), random.Random(seed)
    damage = {"turn": lambda turn: 3 - turn, "lost": lambda _: None, "text": lambda _: "second"}[done]
    rows = [
        {**row, "turn": damage(row["turn"])} if isinstance(row, dict) and draw.random() < share else row for row in rows
    ]
    if not any(isinstance(row, dict) for row in rows):
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "fastchat_single", Options())
    if not computed["valid"]:
        return
    readable = [row for row in rows if isinstance(row, dict) and row["turn"] in (1, 2)]
    kept = latest(sorted(readable, key=lambda row: row["tstamp"]), lambda row: (row["question_id"], row["turn"]))
    known = {(row["question_id"], row["was"]) for row in kept.values()}
    taken = {(row["question_id"], row["was"]) for row in readable} - known
    questions = {question for question, _ in kept}
    if len(kept) > 1.5 * len(questions):
        assert len(taken) <= 0.05 * (len(taken) + len(kept))
    elif len(taken) > 0.05 * len(readable):
        # Where most questions have one turn, none is missed.
        assert any("repeat another row's subject" in warning for warning in computed["warnings"])
    scores = [row["score"] for row in kept.values() if row["score"] != -1]
    assert computed["models"][0]["average"] == pytest.approx(sum(scores) / len(scores))


@given(CHANGES)
@mutated
def test_pairs(published: Path, tmp_path: Path, changes: list[Change]) -> None:
    """Games made of two models' published grades: a higher one wins both orders."""
    lines = (published / "fastchat" / "mt_bench_single_medusa_vicuna.jsonl").read_text().splitlines()
    grades = {(row["question_id"], row["turn"], row["model"]): row["score"] for row in map(json.loads, lines)}
    whole = []
    for (question, turn, model), score in grades.items():
        if model == "vicuna-7b-v1.3":
            other = grades[question, turn, "vicuna-7b-v1.3-greedy"]
            said = "tie" if score == other else "model_1" if score > other else "model_2"
            whole.append(pair(question, said, said, turn=turn))

    def swap(row: Row) -> Row:
        turned = {"model_1": "model_2", "model_2": "model_1"}
        said = {f"g{game}_winner": turned.get(row[f"g{game}_winner"], row[f"g{game}_winner"]) for game in (1, 2)}
        return {**row, "model_1": row["model_2"], "model_2": row["model_1"], **said}

    def value(row: Row) -> float | None:
        """The value of a row for model a."""
        said = row["g1_winner"]
        return {"tie": 0.5, "error": None}.get(said, float(row[said if said in row else "model_1"] == "a"))

    rows = changed(whole, changes, lambda row: {**row, "g1_winner": "error", "g2_winner": "error"}, swap)
    if not rows:
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "fastchat_pair", Options())
    kept = latest(rows, lambda row: (row["question_id"], row["turn"]), lambda row: row["g1_winner"] != "error")
    lost = lost_share(rows, kept, lambda row: row["g1_winner"] != "error")
    assert computed["valid"] == (lost <= 0.05)
    for model_row in computed["models"]:
        if not computed["valid"]:
            assert (model_row["win_rate_adjusted"], model_row["flip_rate"]) == (None, None)
            continue
        values = [said for row in kept.values() if (said := value(row)) is not None]
        mine = values if model_row["model"] == "a" else [1 - said for said in values]
        assert (model_row["n"], model_row["win_rate_adjusted"]) == (len(values), pytest.approx(sum(mine) / len(mine)))
        assert model_row["flip_rate"] == 0


@given(CHANGES, st.booleans())
@mutated
def test_annotations(published: Path, tmp_path: Path, changes: list[Change], placed: bool) -> None:
    folder = published / "alpaca_eval"
    with gzip.open(folder / "preferences_compact.csv.gz", "rt") as file:
        table = [row for row in csv.DictReader(file) if row["model"] == "claude-2"]
    whole = [
        {
            "instruction": f"do {row['row']}",
            **({"index": int(row["row"])} if placed else {}),
            "generator_1": "base",
            "output_1": "",
            "generator_2": "claude-2",
            "output_2": "",
            "dataset": row["dataset"],
            "preference": float(row["preference"]) if row["preference"] else None,
        }
        for row in table
    ]
    rows = changed(whole, changes, lambda row: {**row, "preference": None}, _turned)
    if not rows:
        return
    difficulty = read_difficulty(folder / "instruction_difficulty_recovered.csv")
    weights = read_weights(folder / "glm_weights_published.csv")
    # Where all rows are turned, the model is the other one.
    weights["base"] = weights["claude-2"]
    control = LengthControl(difficulty=difficulty, weights=weights)
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "alpaca_eval", Options(control=control))
    kept = latest(rows, lambda row: row["instruction"], lambda row: row["preference"] is not None)
    lost = lost_share(rows, kept, lambda row: row["preference"] is not None)
    assert computed["valid"] == (lost <= 0.05)
    (mine,) = computed["models"] or [{"win_rate": None, "length_controlled": None}]
    if not computed["valid"]:
        assert (mine["win_rate"], mine["length_controlled"]) == (None, None)
        return
    p = [row["preference"] - 1 for row in (_straight(row) for row in kept.values()) if row["preference"] is not None]
    rate = 100 * sum(p) / len(p)
    assert mine["win_rate"] == pytest.approx(rate if mine["model"] == "claude-2" else 100 - rate)
    places = sorted(int(text.split()[1]) for text in kept)
    if mine["length_controlled"] is None:
        assert not placed
        return
    given_ = weights["claude-2"].weights
    predicted = [1 / (1 + math.exp(-given_.difficulty * difficulty[place] - given_.model)) for place in places]
    assert mine["length_controlled"] == pytest.approx(100 * sum(predicted) / len(predicted))


@given(CHANGES, st.sampled_from(["text", "index", "wrong"]), st.integers(0, 999))
@example([], "wrong", 0)
@example([("double", 0.2, 1), ("shuffle", 0.2, 2), ("swap", 0.2, 3)], "text", 0)
@mutated
def test_fits_of_length_control(
    published: Path, tmp_path: Path, changes: list[Change], known_by: str, seed: int
) -> None:
    """A fit is that of a clean file of the rows that count, whichever way the file has them."""
    folder = published / "alpaca_eval"
    with gzip.open(folder / "preferences_compact.csv.gz", "rt") as file:
        table = [row for row in csv.DictReader(file) if row["model"] == "claude-2"]
    whole = [
        {
            "instruction": f"do {row['row']}",
            **({} if known_by == "text" else {"index": int(row["row"])}),
            "generator_1": "base",
            "output_1": "b" * int(row["len_1"]),
            "generator_2": "claude-2",
            "output_2": "m" * int(row["len_2"]),
            "dataset": row["dataset"],
            "preference": float(row["preference"]) if row["preference"] else None,
        }
        for row in table
    ]

    def turned(row: Row) -> Row:
        return {**_turned(row), "output_1": row["output_2"], "output_2": row["output_1"]}

    rows = changed(whole, changes, lambda row: {**row, "preference": None}, turned)
    if known_by == "wrong":
        numbers = [row["index"] for row in rows if isinstance(row, dict)]
        drawn = iter(random.Random(seed).sample(numbers, len(numbers)))
        rows = [{**row, "index": next(drawn)} if isinstance(row, dict) else row for row in rows]
    kept = list(latest(rows, lambda row: row["instruction"], lambda row: row["preference"] is not None).values())
    clean = [row if row["generator_2"] == "claude-2" else turned(row) for row in kept]
    clean.sort(key=lambda row: int(row["instruction"].split()[1]))
    if not clean:
        return
    control = LengthControl(
        difficulty=read_difficulty(folder / "instruction_difficulty_recovered.csv"),
        gamed=read_gamed(folder / "df_gamed_reconstructed.csv"),
        prompts=[f"do {place}" for place in range(len(table))] if known_by == "text" else None,
        c=2.7825594022071245,
    )
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "alpaca_eval", Options(control=control))
    (mine,) = computed["models"]
    if mine["length_controlled"] is None:
        assert not mine["valid"] or known_by == "wrong" or len(clean) < 20
        return
    assert mine["valid"]
    if known_by == "wrong" and "note" in mine:
        return
    right = [{**row, "index": int(row["instruction"].split()[1])} for row in clean]
    most = sum(row["generator_2"] == "claude-2" for row in kept) * 2
    if most != len(kept):
        assert mine["model"] == ("claude-2" if most > len(kept) else "base")
    if mine["model"] == "base":
        right = [turned(row) for row in right]
    (wanted,) = figures([write(tmp_path / "b.jsonl", *right)], "alpaca_eval", Options(control=control))["models"]
    assert mine["length_controlled"] == pytest.approx(wanted["length_controlled"])
    assert mine["n"] == len([row for row in clean if row["preference"] is not None])


def _turned(row: Row) -> Row:
    said = None if row["preference"] is None else 3 - row["preference"]
    return {**row, "generator_1": row["generator_2"], "generator_2": row["generator_1"], "preference": said}


def _straight(row: Row) -> Row:
    return row if row["generator_2"] == "claude-2" else _turned(row)
