"""Files as they are on the net, imported: the report has the figures of `steerboard figures` on the same file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from formats_world import ROOT, FormatsWorld, jsonl
from typer.testing import CliRunner

from steerboard.cli.evaluation.figures import commands
from steerboard.evaluation.report.sections.judging import judges


@pytest.fixture(autouse=True)
def _however_much_is_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted here would make nearly all figures invalid."""
    monkeypatch.setattr(judges, "UNUSABLE_THRESHOLD", 1.0)


def figures(path: Path, content: bytes, *more: str) -> Any:
    path.write_bytes(content)
    options = ["--threshold", "1", "--repeats", "last", *more]
    ran = CliRunner().invoke(commands, [str(path), *options], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def judge_of(world: FormatsWorld) -> dict[str, Any]:
    (judge,) = world.client.get(f"{ROOT}/evaluations/e/report").json()["judges"]
    return dict(judge)


def test_single_answers_with_numbers_as_texts_failures_duplicates_and_gaps(world: FormatsWorld, tmp_path: Path) -> None:
    world.questions(30, turns=2)
    world.entrants("a", "b", turns=2)
    chance, rows = random.Random(1), []
    for model in ("a", "b"):
        for number in range(81, 111):
            for turn in (1, 2):
                score: Any = chance.choice([7, 8.5, "9", "6.5", 1, -1, "-1", None, "nan", float("nan")])
                row = {"question_id": str(number), "model": model, "judge": ["gpt-4", "single-v1"], "turn": turn}
                rows.append({**row, "score": score, "tstamp": 5.0})
                if chance.random() < 0.2:
                    rows.append({**row, "turn": str(turn), "score": 3, "tstamp": chance.choice(["1.5", 9.0, "x"])})
    chance.shuffle(rows)
    content = jsonl(rows[5:])
    world.judgments(content)
    judge, computed = judge_of(world), figures(tmp_path / "f.jsonl", content)
    assert computed["bad_rows"] == 0
    assert judge["superseded"] == sum(model["superseded"] for model in computed["models"]) > 3
    assert judge["unparsed"] == sum(model["unparsed"] for model in computed["models"]) > 10
    imported = {row["entrant"]: (row["turn_1"], row["turn_2"], row["average"], row["n"]) for row in judge["single"]}
    for model_row in computed["models"]:
        theirs = model_row["turns"]["1"], model_row["turns"]["2"], model_row["average"], model_row["n"]
        assert imported[model_row["model"]] == pytest.approx(theirs, abs=1e-12)


def test_pairs_in_both_orders_with_nulls_and_errors(world: FormatsWorld, tmp_path: Path) -> None:
    world.questions(40)
    world.entrants("a", "b")
    chance, rows = random.Random(2), []
    for number in range(81, 121):
        winners = [chance.choice(["model_1", "model_1", "model_2", "tie", "error", None]) for _ in range(2)]
        row = {"question_id": number, "model_1": "a", "model_2": "b", "judge": ["gpt-4", "pair-v2"], "turn": 1}
        rows.append({**row, "g1_winner": winners[0], "g2_winner": winners[1], "tstamp": 4})
        if chance.random() < 0.2:
            rows.append({**row, "g1_winner": "model_2", "g2_winner": "model_2", "tstamp": chance.choice([3, 4])})
    content = jsonl(rows)
    world.judgments(content)
    judge, computed = judge_of(world), figures(tmp_path / "f.jsonl", content)
    (pair,) = judge["comparison"]["pairs"]
    a = next(model for model in computed["models"] if model["model"] == "a")
    assert (pair["wins"], pair["ties"], pair["losses"]) == (a["wins"], a["ties"], a["losses"])
    assert pair["win_rate"]["value"] == pytest.approx(a["win_rate_adjusted"])
    assert judge["biases"]["flip_rate"]["value"] == pytest.approx(a["flip_rate"])
    assert judge["superseded"] == 2 * computed["superseded"] > 0
    assert a["errors"] > 5
    assert any("items have several verdicts that no time orders" in warning for warning in judge["warnings"])


def test_arena_hard_games_with_nulls_and_repeated_rows(world: FormatsWorld, tmp_path: Path) -> None:
    world.questions(40)
    world.entrants("a", "b", "gpt-4-0314")
    chance, rows = random.Random(3), []
    labels = ["A>>B", "A>B", "A=B", "B>A", "B>>A", None, "a>b", float("nan")]
    for model in ("a", "b"):
        for number in range(81, 121):
            games = [chance.choice([None, *({"score": label} for label in labels)]) for _ in range(2)]
            row = {"question_id": str(number), "model": model, "judge": "j"}
            rows.append({**row, "games": games, "tstamp": 2.0})
            if chance.random() < 0.2:
                rows.append({**row, "games": [{"score": "A>>B"}, {"score": "B>>A"}], "tstamp": 1.0})
    content = jsonl(rows)
    world.judgments(content)
    judge, computed = judge_of(world), figures(tmp_path / "f.jsonl", content)
    assert computed["baseline"] == "gpt-4-0314"
    assert (computed["bad_rows"], computed["unparsed"]) == (0, judge["unparsed"] + judge["errors"])
    assert judge["superseded"] == 2 * computed["superseded"] > 0
    imported = {row["entrant"]: (row["win_rate"], row["n"]) for row in judge["arena_hard"]}
    for model_row in computed["models"]:
        assert imported[model_row["model"]] == pytest.approx((model_row["win_rate"], model_row["n"]), abs=1e-6)


def test_alpaca_eval_annotations_in_which_one_instruction_stands_twice(world: FormatsWorld, tmp_path: Path) -> None:
    instructions = [f"do {number if number != 7 else 3}" for number in range(30)]
    world.evaluation(
        json.dumps([{"instruction": instruction, "dataset": "d"} for instruction in instructions]).encode()
    )
    chance = random.Random(4)
    rows = [
        {
            "instruction": instruction,
            "generator_1": "base",
            "output_1": f"{place} " + "b" * chance.randrange(50),
            "generator_2": "m",
            "output_2": "m" * chance.randrange(1, 90),
            "annotator": "w",
            "preference": chance.choice([1.75, "1.25", 0, 1, 2, None, 1.5, 1.9]),
        }
        for place, instruction in enumerate(instructions)
    ]
    content = json.dumps(rows).encode()
    world.judgments(content, add_entrants="true")
    judge, computed = judge_of(world), figures(tmp_path / "f.json", content)
    (theirs,), (mine,) = computed["models"], judge["alpaca_eval"]
    assert (theirs["superseded"], theirs["n"] + theirs["nulls"]) == (0, 30)
    for name in ("win_rate", "standard_error", "discrete_win_rate"):
        assert mine[name] == pytest.approx(theirs[name], abs=1e-9)
    assert (mine["length_control"], theirs["variant"]) == ("minimal", "minimal")
    assert mine["length_controlled"] == pytest.approx(theirs["length_controlled_minimal"], abs=1e-9)
    assert (mine["n_wins"], mine["n_losses"], mine["n_ties"]) == (theirs["wins"], theirs["losses"], theirs["draws"])


def test_reviews_of_both_orders_count_once_and_have_a_flip_rate(world: FormatsWorld, tmp_path: Path) -> None:
    world.questions(10)
    world.entrants("a", "b")
    rows = []
    for number in range(81, 91):
        row = {"question_id": number, "answer1_id": "1", "answer2_id": "2", "text": "t"}
        rows.append({**row, "model_1": "a", "model_2": "b", "score": [9, 5]})
        # The first is reviewed in one order only, and on the last two the order does not change who is better.
        if number > 81:
            score = ["8", "6"] if number < 89 else ["4", "6"]
            rows.append({**row, "answer1_id": "2", "answer2_id": "1", "model_1": "b", "model_2": "a", "score": score})
    world.judgments(jsonl(rows))
    judge = judge_of(world)
    assert (judge["ok"], judge["superseded"]) == (38, 0)
    means = {score["entrant"]: score["mean"]["value"] for score in judge["comparison"]["scores"]}
    assert means == {"a": (9 + 9 * 7.5) / 10, "b": (5 + 7 * 6.5 + 2 * 4.5) / 10}
    assert {row["entrant"]: row["average"] for row in judge["single"]} == means
    assert (judge["biases"]["flip_rate"]["value"], judge["biases"]["flip_rate"]["n"]) == (pytest.approx(7 / 9), 9)
    assert judge["biases"]["first_wins"]["value"] == pytest.approx((10 + 7) / 19)
    assert "1 questions were reviewed in one order only: their scores have position bias" in judge["warnings"]
    (theirs,) = figures(tmp_path / "review_a_b.jsonl", jsonl(rows))["files"]
    assert {"a": theirs["total_1"] / 10, "b": theirs["total_2"] / 10} == means
    assert theirs["flip_rate"] == judge["biases"]["flip_rate"]["value"]


def test_a_review_whose_other_order_was_not_parsed_has_no_score(world: FormatsWorld, tmp_path: Path) -> None:
    world.questions(40)
    world.entrants("a", "b")
    rows = []
    for number in range(81, 121):
        row = {"question_id": number, "answer1_id": "1", "answer2_id": "2", "text": "t"}
        rows.append({**row, "model_1": "a", "model_2": "b", "score": [9, 5] if number > 81 else [1, 1]})
        turned = {**row, "answer1_id": "2", "answer2_id": "1", "model_1": "b", "model_2": "a"}
        rows.append({**turned, "score": [7, 5] if number > 81 else [-1, -1]})
    world.judgments(jsonl(rows))
    judge = judge_of(world)
    means = {score["entrant"]: (score["mean"]["value"], score["mean"]["n"]) for score in judge["comparison"]["scores"]}
    assert means == {"a": (7, 39), "b": (6, 39)}
    assert not any("one order only" in warning for warning in judge["warnings"])
    (theirs,) = figures(tmp_path / "review_a_b.jsonl", jsonl(rows))["files"]
    assert (theirs["total_1"] / 39, theirs["total_2"] / 39, theirs["n"]) == (7, 6, 39)


def test_reviews_of_several_pairs_of_assistants_are_no_import(world: FormatsWorld) -> None:
    world.questions(1)
    world.entrants("a", "b", "c")
    review = {"question_id": 81, "answer1_id": "1", "text": "t", "score": [8, 7], "model_1": "a"}
    rows = [{**review, "answer2_id": two, "model_2": two} for two in ("b", "c")]
    refused = world.refused("evaluations/e/judgments", jsonl(rows))
    assert (refused["code"], "several pairs of assistants on question 81" in refused["detail"]) == (
        "several_pairs",
        True,
    )
