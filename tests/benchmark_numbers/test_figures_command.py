"""`steerboard figures`: the same numbers from the command line, of published files and of small flawed ones."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from steerboard.cli.figures import commands


def figures(*arguments: object) -> Any:
    ran = CliRunner().invoke(commands, [str(argument) for argument in arguments], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def test_alpaca_eval_with_length_control_equals_the_leaderboard(published: Path) -> None:
    folder = published / "alpaca_eval"
    found = figures(
        folder / "preferences_compact.csv.gz",
        "--difficulty",
        folder / "instruction_difficulty_recovered.csv",
        "--weights",
        folder / "glm_weights_published.csv",
    )
    with (folder / "leaderboard.csv").open() as file:
        leaderboard = {row[""]: row for row in csv.DictReader(file)}
    assert {one["model"] for one in found["models"]} == set(leaderboard)
    for one in found["models"]:
        row = leaderboard[one["model"]]
        for name in ("win_rate", "standard_error", "discrete_win_rate"):
            assert one[name] == pytest.approx(float(row[name]), abs=1e-6)
        assert (one["wins"], one["losses"], one["draws"], one["n"]) == tuple(
            int(row[name]) for name in ("n_wins", "n_wins_base", "n_draws", "n_total")
        )
        assert one["length_controlled"] == pytest.approx(float(row["length_controlled_winrate"]), abs=1e-6)


def test_annotations_with_nulls_zeros_and_repeated_rows(tmp_path: Path) -> None:
    def row(n: int, preference: float | None) -> dict[str, Any]:
        return {
            "instruction": f"Question {n}",
            "output_1": "short",
            "generator_1": "base",
            "output_2": "longer than it",
            "generator_2": "mine",
            "preference": preference,
        }

    file = tmp_path / "annotations.json"
    rows = [row(0, 1.0), row(1, 0), row(2, None), row(3, 2.0), row(0, 2.0), row(4, 7.0)]
    file.write_text("[" + ",\n".join(map(json.dumps, rows)) + "]")
    found = figures(file)
    (mine,) = found["models"]
    assert (mine["n"], mine["nulls"], mine["superseded"]) == (3, 1, 1)
    assert mine["win_rate"] == pytest.approx(100 * (1 + 0.5 + 1) / 3)
    assert found["bad_rows"] == 1
    assert "line 6" in found["bad"][0]
    assert mine["length_controlled"] is None
    assert "length" in mine["why"]


def test_fastchat_scores_of_several_models_are_ranked(published: Path) -> None:
    files = sorted((published / "arena_hard" / "arena-bench-v1_single").glob("*.gz"))
    found = figures(*files)
    assert len(found["models"]) == 5
    assert found["items_of_all"] == 285
    assert found["friedman"]["statistic"] == pytest.approx(586.157, abs=1e-3)


def test_rewardbench_of_a_results_file_and_of_pairs(published: Path, tmp_path: Path) -> None:
    (file,) = (published / "rewardbench").glob("subset_scores*.json")
    assert figures(file)["overall"] == pytest.approx(0.77377, abs=1e-5)
    pairs = tmp_path / "pairs.jsonl"
    rows = [("math-prm", 1.0, 0.5), ("math-prm", 0.5, 0.5), ("hep-cpp", [2.0], [1.0])]
    pairs.write_text(
        "".join(json.dumps({"subset": s, "chosen_reward": c, "rejected_reward": r}) + "\n" for s, c, r in rows)
    )
    found = figures(pairs)
    assert found["subsets"] == {"math-prm": 0.5, "hep-cpp": 1.0}
    assert found["sections"]["Reasoning"] == pytest.approx((0.5 * 984 + 164) / (984 + 164))
    assert found["overall"] is None


def test_pairs_in_both_orders(tmp_path: Path) -> None:
    def game(first: str, second: str) -> dict[str, Any]:
        names = {"question_id": 1, "model_1": "a", "model_2": "b", "turn": 1, "judge": ["gpt-4", "pair-v2"]}
        return {**names, "g1_winner": first, "g2_winner": second}

    file = tmp_path / "pair.jsonl"
    games = [("model_1", "model_1"), ("model_1", "model_2"), ("tie", "tie"), ("error", "model_1")]
    file.write_text("".join(json.dumps(game(*winners)) + "\n" for winners in games))
    a = next(one for one in figures(file)["models"] if one["model"] == "a")
    assert (a["wins"], a["ties"], a["losses"], a["flips"], a["errors"]) == (1, 2, 0, 1, 1)
    assert a["win_rate_adjusted"] == pytest.approx(2 / 3)
