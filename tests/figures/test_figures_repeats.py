"""Repeated and missing rows are pointed out, and half of a game is no clean figure."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from figures.figures_runner import annotation, figures, invalid, pair, single, write
from steerboard.cli.output.figures_table import print_figures

Rows = list[dict[str, Any]]


def _rewards() -> Rows:
    return [{"subset": "hep-go", "id": n, "chosen_reward": 1, "rejected_reward": 0} for n in range(164)]


def _verdicts() -> Rows:
    verdict = {"label": 1, "winner_order12": 1, "winner_order21": 1}
    return [{"dataset": "Natural", "evaluator": "e", "idx": n, **verdict} for n in range(40)]


def _games(number: int = 40, model: str = "m", **more: Any) -> Rows:
    games = [{"score": "B>A" if number % 3 else "A>B"}, {"score": "A>B"}]
    return [{"question_id": n, "model": model, "baseline": "base", "games": games, **more} for n in range(number)]


def _battles() -> Rows:
    return [{"id": n, "model_a": "a", "model_b": "b", "winner": "model_a" if n % 3 else "model_b"} for n in range(40)]


def _scores() -> Rows:
    return [{"subset": "Math", "id": n, "num_correct": 1, "scores": [1, 0, 0, 0]} for n in range(40)]


def _reviews() -> Rows:
    return [
        {"question_id": n, "answer1_id": f"x{n}", "answer2_id": f"y{n}", "score": [8, 7 + n % 3]} for n in range(40)
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [single(n, 5) for n in range(40)],
        [annotation(n, 1 + n % 9 / 10) for n in range(40)],
        [pair(n, "model_1", "model_2") for n in range(40)],
        *(make() for make in (_rewards, _verdicts, _games, _battles, _scores, _reviews)),
    ],
)
def test_many_repeated_rows_are_pointed_out(tmp_path: Path, rows: Rows) -> None:
    def warned(*more: dict[str, Any]) -> list[str]:
        computed = figures(write(tmp_path / "a.jsonl", *rows, *more))
        return [warning for warning in computed["warnings"] if "each subject counts once" in warning]

    assert (warned(), warned(rows[0])) == ([], [])
    (warning,) = warned(*rows[:20])
    assert f"20 of {len(rows) + 20} rows" in warning


def test_repeated_verdicts_of_pandalm_are_pointed_out(tmp_path: Path) -> None:
    votes = [{"idx": n, **{f"annotator{k}": n % 2 for k in (1, 2, 3)}} for n in range(40)]
    said = [{"idx": n, "x_result": n % 2} for n in range(40)]
    computed = figures(write(tmp_path / "a.jsonl", *votes), write(tmp_path / "b.jsonl", *said, *said[:20]))
    assert ["x: 20 of 60 rows" in warning for warning in computed["warnings"]] == [True]


def test_items_that_others_have_are_pointed_out(tmp_path: Path) -> None:
    def warned(*rows: dict[str, Any]) -> str:
        return "\n".join(figures(write(tmp_path / "a.jsonl", *rows))["warnings"])

    marks = [
        annotation(n, 1.5, generator_2=name) for n in range(40) for name in ("mine", "short") if name != "short" or n
    ]
    assert "short" not in warned(*marks)
    few = [
        annotation(n, 1.5, generator_2=name)
        for n in range(40)
        for name in ("mine", "short")
        if name != "short" or n > 9
    ]
    assert "short has no judgment of 10 of 40 prompts that others have" in warned(*few)
    assert "x has no judgment of 10 of 40 questions" in warned(*_games(), *_games(30, model="x"))
    pairs = [pair(n, "model_1", "model_1") for n in range(40)]
    pairs += [{**row, "model_2": "c"} for row in pairs[:20]]
    assert "a against c has no judgment of 20 of 40 questions and turns" in warned(*pairs)
    verdicts = _verdicts()
    assert "Natural: f has no judgment of 30 of 40" in warned(
        *verdicts, *({**verdict, "evaluator": "f"} for verdict in verdicts[:10])
    )
    assert "hep-go 100 of 164" in warned(*_rewards()[:100])


def test_one_of_two_games_is_no_win_rate(tmp_path: Path) -> None:
    rows = [{**row, "games": row["games"][:1]} if n % 2 else row for n, row in enumerate(_games())]
    computed = invalid(write(tmp_path / "a.jsonl", *rows))
    mine = next(model for model in computed["models"] if model["model"] == "m")
    assert (mine["win_rate"], mine["low"]) == (None, None)
    assert "20 without the game of the other order" in mine["reason"]


def test_a_model_that_no_game_joins_to_the_baseline_is_not_passed_over(tmp_path: Path) -> None:
    apart = [{**row, "baseline": "q"} for row in _games(30, model="p")]
    computed = invalid(write(tmp_path / "a.jsonl", *_games(), *apart))
    assert computed["unrated"] == ["m", "p", "q"]  # m won everything
    rated = {model["model"] for model in computed["models"] if model["win_rate"] is not None}
    assert (rated, {model["model"] for model in computed["models"]} - rated) == ({"base", "m"}, {"p", "q"})
    assert "p: no chain of wins or losses connects it to base" in computed["reasons"]
    assert any("compare with 2 baselines" in warning for warning in computed["warnings"])


def test_reviews_with_the_answers_swapped_count_once(published: Path, tmp_path: Path) -> None:
    path = published / "vicuna_blog" / "review" / "others" / "review_llama_alpaca-13b.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    swapped = [
        {**row, "answer1_id": row["answer2_id"], "answer2_id": row["answer1_id"], "score": row["score"][::-1]}
        for row in rows
    ]
    (whole,) = figures(path)["files"]
    computed = figures(write(tmp_path / "a.jsonl", *rows, *swapped))
    (file,) = computed["files"]
    assert [file[key] for key in ("total_1", "total_2", "n", "superseded")] == [
        whole["total_1"],
        whole["total_2"],
        80,
        0,
    ]
    assert (whole["flip_rate"], file["flip_rate"]) == (None, 0)
    (places,) = computed["warnings"]
    assert "names answers, not models" in places
    _, orders = figures(path)["warnings"]
    assert "80 of 80 pairs were reviewed in one order only" in orders
    half = [{**row, "score": row["score"][::-1]} for row in swapped[:40]]
    (file,) = figures(write(tmp_path / "b.jsonl", *rows, *half))["files"]
    ties = sum(row["score"][0] == row["score"][1] for row in rows[:40])
    assert file["flip_rate"] == pytest.approx(1 - ties / 40)


def test_reviews_of_several_pairs_of_assistants_have_no_total(published: Path, tmp_path: Path) -> None:
    files = sorted((published / "vicuna_blog" / "review" / "vicuna-7b_20230322-fp16").glob("*.jsonl"))[:2]
    path = tmp_path / "both.jsonl"
    path.write_text("".join(file.read_text() for file in files))
    computed = invalid(path)
    assert computed["files"][0]["total_1"] is None
    assert "several pairs of assistants" in computed["reasons"][0]
    assert len(figures(*files)["files"]) == 2


@pytest.mark.parametrize("width", [60, 100])
def test_people_see_the_win_matrix_and_what_style_weighs(tmp_path: Path, width: int) -> None:
    rows = [
        {**row, "conversation_a": "w" * (20 + n % 7), "conversation_b": "w" * (20 + n % 5)}
        for n, row in enumerate(_battles())
    ]
    rows += [{**row, "id": f"c{row['id']}", "model_b": "third"} for row in rows]
    text = io.StringIO()
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    print_figures(computed, Console(file=text, width=width))
    assert f"{computed['matrix']['third']['a']:.4g}" in text.getvalue().split("win rates of rows against columns")[1]
    assert "coefficients: bold" in text.getvalue()


def test_a_few_turned_rows_do_not_make_the_baseline_the_model(tmp_path: Path) -> None:
    rows = [annotation(n, 1 + n % 5 / 4) for n in range(40)]
    sides = {"generator_1": "mine", "generator_2": "base"}
    turned = [
        {**row, **sides, "output_1": row["output_2"], "output_2": row["output_1"], "preference": 3 - row["preference"]}
        for row in rows
    ]
    whole = figures(write(tmp_path / "a.jsonl", *rows), "--c", 10)["models"]
    assert figures(write(tmp_path / "b.jsonl", *turned[:3], *rows[3:]), "--c", 10)["models"] == whole
    (other,) = figures(write(tmp_path / "c.jsonl", *rows[:3], *turned[3:]), "--c", 10)["models"]
    assert (other["model"], other["win_rate"]) == ("base", pytest.approx(100 - whole[0]["win_rate"]))
