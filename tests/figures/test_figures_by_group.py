"""Rows that cannot be used of one model, subset, evaluator or file do not hide behind those of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import annotation, figures, invalid, single, write
from steerboard_statistics.benchmarks.rewardbench2 import DOMAINS


def battle(number: int, one: str, other: str, winner: str) -> dict[str, Any]:
    return {"id": f"{one}{other}{number}", "model_a": one, "model_b": other, "winner": winner}


def test_battles_of_one_model_without_a_winner_leave_it_without_a_rating(tmp_path: Path) -> None:
    rows = [
        battle(n, one, other, "model_a" if n % 3 else "model_b")
        for n in range(200)
        for one, other in (("a", "b"), ("b", "c"), ("c", "a"))
    ]
    few = [battle(n, "d", other, "model_a" if n % 2 else "model_b") for n in range(6) for other in "abc"]
    lost = [battle(n, "d", "a", "?") for n in range(300, 306)]
    alone = figures(write(tmp_path / "alone.jsonl", *rows))
    computed = invalid(write(tmp_path / "a.jsonl", *rows, *few, *lost))
    models = {model["model"]: model for model in computed["models"]}
    assert [name for name, model in models.items() if not model.get("valid", True)] == ["d"]
    assert (models["d"]["rating"], models["d"]["elo"]) == (None, None)
    assert models["d"]["partial"]["rating"] is not None
    assert "6 of 24 battles cannot be used" in models["d"]["reason"]
    assert "d" not in computed["matrix"]
    for model in alone["models"]:
        assert models[model["model"]]["rating"] == model["rating"]
    silent = invalid(write(tmp_path / "b.jsonl", *rows, battle(1, "e", "a", "?")))
    assert {model["model"] for model in silent["models"] if model["rating"] is None} == {"e"}


def test_verdicts_of_one_evaluator_that_cannot_be_read(tmp_path: Path) -> None:
    def row(number: int, evaluator: str, first: object = 1) -> dict[str, Any]:
        verdicts = {"label": 1, "winner_order12": first, "winner_order21": 1 + number % 2}
        return {"dataset": "Natural", "evaluator": evaluator, "idx": number, **verdicts}

    rows = [row(n, f"e{k}") for n in range(50) for k in range(20)]
    computed = invalid(write(tmp_path / "a.jsonl", *rows, *(row(n, "e3", 7) for n in range(60, 66)), row(1, "mute", 9)))
    by_name = {evaluator["evaluator"]: evaluator for evaluator in computed["evaluators"]}
    assert {name for name, evaluator in by_name.items() if not evaluator["valid"]} == {"e3", "mute"}
    assert [by_name[name]["correct_average"] for name in ("e1", "e3", "mute")] == [0.75, None, None]
    assert "6 unreadable" in by_name["e3"]["reason"]


def test_rewards_of_one_subset_that_cannot_be_read_leave_its_section_without_a_figure(tmp_path: Path) -> None:
    good = [
        {"subset": subset, "chosen_reward": 1, "rejected_reward": 0}
        for subset in ("hep-go", "hep-js", "donotanswer")
        for _ in range(100)
    ]
    bad = [{"subset": "hep-js", "chosen_reward": "high", "rejected_reward": 0}] * 10
    never = [{"subset": "hep-cpp", "chosen_reward": {}, "rejected_reward": 0}]
    computed = invalid(write(tmp_path / "a.jsonl", *good, *bad, *never))
    assert computed["subsets"] == {"hep-go": 1, "hep-js": None, "donotanswer": 1, "hep-cpp": None}
    assert computed["sections"] == {"Reasoning": None, "Safety": 1}
    assert "hep-js: 10 of 110 pairs cannot be used (10 unreadable): more than 5%" in computed["reasons"]


def test_scores_of_one_domain_that_cannot_be_read(tmp_path: Path) -> None:
    names = [name for name in DOMAINS if name != "Ties"]
    good = [
        {"subset": name, "id": f"{n}", "num_correct": 1, "scores": [2, 1, 0, 0]} for name in names for n in range(100)
    ]
    bad = [{"subset": names[0], "id": f"x{n}", "num_correct": 9, "scores": [1, 0]} for n in range(10)]
    computed = invalid(write(tmp_path / "a.jsonl", *good, *bad))
    assert (computed["domains"][names[0]], computed["domains"][names[1]]) == (None, 1)


def test_reviews_of_one_file_that_cannot_be_read(tmp_path: Path) -> None:
    def row(number: int, score: Any) -> dict[str, Any]:
        return {"question_id": number, "answer1_id": f"x{number}", "answer2_id": f"y{number}", "score": score}

    good = [write(tmp_path / f"{k}.jsonl", *(row(n, [8, 7]) for n in range(80))) for k in range(8)]
    broken = write(tmp_path / "broken.jsonl", *(row(n, [8, 7]) for n in range(60)), *(row(n, "?") for n in range(20)))
    cut = write(tmp_path / "cut.jsonl", *(row(n, [8, 7]) for n in range(70)), *["{"] * 10)
    computed = invalid(*good, broken, cut)
    assert [file["file"] for file in computed["files"] if file["share_1"] is None] == ["broken.jsonl", "cut.jsonl"]


def test_a_leaderboard_whose_figures_are_no_numbers_correlates_with_nothing(tmp_path: Path) -> None:
    long, short = tmp_path / "long.csv", tmp_path / "short.csv"
    long.write_text("model,score\n" + "".join(f"m{n},{n}\n" for n in range(200)))
    short.write_text("model,score\n" + "".join(f"m{n},{n if n % 5 else 'x'}\n" for n in range(20)))
    computed = invalid(long, short, "--format", "leaderboards")
    assert (computed["spearman"], computed["pearson"]) == (None, None)
    assert "short.csv: 4 of 20 models cannot be used" in computed["reasons"][0]
    short.write_text("model,score\n" + "".join(f"m{n},{n if n % 5 else ''}\n" for n in range(20)))
    computed = figures(long, short, "--format", "leaderboards")
    assert (computed["n"], computed["spearman"]) == (16, pytest.approx(1))
    assert "m5" in computed["only_in"][0]
    assert "short.csv has no score of 4 models, which count as absent" in computed["warnings"]


def test_a_judge_of_pandalm_is_not_answerable_for_another_and_answers_need_votes(tmp_path: Path) -> None:
    votes = [{"idx": n, **{f"annotator{k}": n % 2 for k in (1, 2, 3)}} for n in range(100)]
    said = [{"idx": n, "bad_result": 7 if n < 20 else n % 2, "good_result": n % 2} for n in range(100)]
    files = write(tmp_path / "a.jsonl", *votes), write(tmp_path / "b.jsonl", *said)
    assert {model["model"]: model["accuracy"] for model in invalid(*files)["models"]} == {"bad": None, "good": 1}
    broken = write(tmp_path / "c.jsonl", *votes[:91], *({**row, "annotator2": 9} for row in votes[91:]))
    assert {model["model"]: model["accuracy"] for model in invalid(broken, files[1])["models"]} == {
        "bad": None,
        "good": None,
    }


def test_lines_that_nobody_can_read_count_against_the_models_of_their_file(tmp_path: Path) -> None:
    whole = [write(tmp_path / f"{k}.jsonl", *(single(n, 5, model=f"m{k}") for n in range(100))) for k in range(9)]
    cut = write(tmp_path / "cut.jsonl", *(single(n, 5, model="cut") for n in range(50)), *["{"] * 30)
    computed = invalid(*whole, cut)
    assert [model["model"] for model in computed["models"] if model["average"] is None] == ["cut"]
    marks = write(tmp_path / "marks.jsonl", *(annotation(n, 1.5) for n in range(90)), *["{"] * 10)
    assert invalid(marks)["models"][0]["win_rate"] is None
