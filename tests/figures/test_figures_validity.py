"""Input that cannot be used makes a figure of `steerboard figures` invalid, and the exit code 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figures.figures_runner import annotation, figures, invalid, pair, run, single, write
from steerboard_contracts.errors import BadInput
from steerboard_files.errors import BrokenFile


def test_most_judgments_unparsed_is_no_mean(published: Path, tmp_path: Path) -> None:
    lines = (published / "fastchat" / "mt_bench_single_phi3dpo.jsonl").read_text().splitlines()
    rows = [{**json.loads(line), **({"score": -1} if n < 120 else {})} for n, line in enumerate(lines)]
    path = write(tmp_path / "a.jsonl", *rows)
    (mine,) = invalid(path)["models"]
    assert (mine["valid"], mine["average"], mine["turns"], mine["unparsed"]) == (False, None, None, 120)
    assert mine["partial"]["average"] is not None
    assert "120 of 160 judgments cannot be used (120 unparsed): more than 5%" in mine["reason"]
    # Some of the categories have lost more than these 75%.
    (mine,) = invalid(path, "--threshold", 0.75)["models"]
    assert mine["valid"]
    assert mine["average"] == pytest.approx(sum(row["score"] for row in rows[120:]) / 40)


def test_most_preferences_null_is_no_win_rate(tmp_path: Path) -> None:
    rows = [annotation(n, None if n % 10 else 1.9) for n in range(100)]
    (mine,) = invalid(write(tmp_path / "a.jsonl", *rows))["models"]
    assert (mine["win_rate"], mine["discrete_win_rate"], mine["standard_error"]) == (None, None, None)
    assert "90 of 100" in mine["reason"]
    assert mine["partial"]["win_rate"] == pytest.approx(90)


def test_most_pairs_with_errors_is_no_win_rate(tmp_path: Path) -> None:
    rows = [pair(n, "error" if n % 5 else "model_1", "model_1") for n in range(50)]
    for mine in invalid(write(tmp_path / "a.jsonl", *rows))["models"]:
        assert (mine["win_rate_adjusted"], mine["flip_rate"], mine["errors"]) == (None, None, 40)


def test_games_of_arena_hard_and_reviews_that_tell_nothing(tmp_path: Path) -> None:
    game = {"model": "m", "judge": "j"}
    arena = [
        {**game, "question_id": n, "games": [{"score": None if n % 2 else "A>B"}, {"score": "B>A"}]} for n in range(20)
    ]
    computed = invalid(write(tmp_path / "a.jsonl", *arena))
    mine = next(model for model in computed["models"] if model["model"] == "m")
    assert (mine["win_rate"], mine["low"], mine["rating"]) == (None, None, None)
    review = {"answer1_id": "x", "answer2_id": "y", "text": "t"}
    reviews = [{**review, "question_id": n, "score": [-1, -1] if n % 2 else [8, 7]} for n in range(20)]
    (file,) = invalid(write(tmp_path / "b.jsonl", *reviews))["files"]
    assert (file["share_1"], file["total_1"]) == (None, None)


def test_a_file_whose_every_row_is_bad(tmp_path: Path) -> None:
    computed = invalid(write(tmp_path / "a.jsonl", *[single(n, 5, turn=0) for n in range(3)]))
    assert (computed["rows"], computed["bad_rows"]) == (0, 3)
    assert all(model["average"] is None for model in computed["models"])


def test_bad_rows_of_one_model_do_not_hide_behind_the_others(tmp_path: Path) -> None:
    rows = [single(n, 5 + n % 3, model=f"m{m}") for n in range(50) for m in range(12)]
    broken = [single(n, 5, model="silent", turn="x") for n in range(20)]
    computed = invalid(write(tmp_path / "a.jsonl", *rows, *broken))
    models = {model["model"]: model for model in computed["models"]}
    assert [name for name, model in models.items() if not model["valid"]] == ["silent"]
    assert "20 unreadable" in models["silent"]["reason"]
    unreadable = ["{"] * 60
    computed = invalid(write(tmp_path / "b.jsonl", *rows, *unreadable))
    assert not any(model["valid"] for model in computed["models"])


def test_two_judges_are_two_results(tmp_path: Path) -> None:
    rows = [
        single(n, 9 if judge == "kind" else 3, judge=[judge, "v1"]) for n in range(10) for judge in ("kind", "hard")
    ]
    path = write(tmp_path / "a.jsonl", *rows)
    computed = figures(path)
    assert computed["judges"] == {"kind": 10, "hard": 10}
    assert "models" not in computed
    assert {result["judge"]: result["models"][0]["average"] for result in computed["results"]} == {"kind": 9, "hard": 3}
    assert figures(path, "--judge", "hard")["models"][0]["average"] == 3
    with pytest.raises(BadInput, match="no judgment of 'soft'; its judges are kind, hard"):
        run(path, "--judge", "soft")


def test_two_judges_of_annotations_and_of_pairs(tmp_path: Path) -> None:
    rows = [annotation(n, 1.9 if n % 2 else 1.1, annotator="one" if n % 2 else "two") for n in range(20)]
    rates = {
        result["judge"]: result["models"][0]["win_rate"]
        for result in figures(write(tmp_path / "a.jsonl", *rows))["results"]
    }
    assert rates == {"one": pytest.approx(90), "two": pytest.approx(10)}
    games = [pair(n, f"model_{who}", f"model_{who}", judge=[f"j{who}", "v"]) for n in range(8) for who in (1, 2)]
    for result in figures(write(tmp_path / "b.jsonl", *games))["results"]:
        assert {row["model"]: row["win_rate"] for row in result["models"]}["a"] == (1 if result["judge"] == "j1" else 0)


def test_rows_without_an_id_are_not_taken_by_their_place(tmp_path: Path) -> None:
    rows = [{"model": model, "score": score} for score in (3, 5, 7) for model in ("a", "b")]
    computed = invalid(write(tmp_path / "a.jsonl", *rows))
    assert computed["bad_rows"] == 6
    assert "question_id" in computed["bad"][0]
    games = [{key: value for key, value in pair(n, "tie", "tie").items() if key != "question_id"} for n in range(3)]
    assert invalid(write(tmp_path / "b.jsonl", *games))["bad_rows"] == 3


def test_one_order_has_no_flip_rate(tmp_path: Path) -> None:
    computed = figures(write(tmp_path / "a.jsonl", *[pair(n, "model_1") for n in range(12)]))
    assert [model["flip_rate"] for model in computed["models"]] == [None, None]
    assert computed["one_order"] == 12
    assert any("position bias" in warning for warning in computed["warnings"])


def test_the_same_pair_with_its_roles_swapped_counts_once(tmp_path: Path) -> None:
    rows = [pair(n, "model_1", "model_1") for n in range(10)]
    swapped = [{**row, "model_1": "b", "model_2": "a", "g1_winner": "model_2", "g2_winner": "model_2"} for row in rows]
    computed = figures(write(tmp_path / "a.jsonl", *rows, *swapped[:4]))
    assert ({model["model"]: (model["wins"], model["n"]) for model in computed["models"]}, computed["superseded"]) == (
        {"a": (10, 10), "b": (0, 10)},
        4,
    )
    halves = [pair(0, "model_1"), {**pair(0, "model_1"), "model_1": "b", "model_2": "a"}]
    (model, _) = figures(write(tmp_path / "b.jsonl", *halves))["models"]
    assert (model["ties"], model["flip_rate"]) == (1, 1)
    marks = [annotation(n, 1.9) for n in range(10)]
    marks += [
        {**row, "generator_1": "mine", "generator_2": "base", "output_1": row["output_2"], "output_2": row["output_1"]}
        | {"preference": 1.1}
        for row in marks[:4]
    ]
    (mine,) = figures(write(tmp_path / "c.jsonl", *marks))["models"]
    assert (mine["n"], mine["superseded"], mine["win_rate"]) == (10, 0, pytest.approx(90))
    arena = [
        {"question_id": n, "model": a, "baseline": b, "judge": "j", "games": [{"score": one}, {"score": two}]}
        for n in range(6)
        for a, b, one, two in (("m", "base", "B>A", "A>B"), ("base", "m", "A>B", "B>A"))
    ]
    computed = figures(write(tmp_path / "d.jsonl", *arena), "--baseline", "base")
    assert (computed["superseded"], {model["n"] for model in computed["models"]}) == (6, {12})


@pytest.mark.parametrize("score", [0, 11, 100, -3])
def test_scores_outside_the_scale_are_named_by_line(tmp_path: Path, score: float) -> None:
    rows = [single(n, 5) for n in range(40)]
    computed = figures(write(tmp_path / "a.jsonl", *rows, single(41, score)))
    assert computed["bad"] == [f"a.jsonl, line 41: has {score} in `score`, outside of 1 to 10"]
    assert computed["models"][0]["average"] == 5


def test_accuracies_and_lengths_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"hep-go": 66.2, "hep-js": 0.5}')
    with pytest.raises(BadInput, match=r"hep-go.*66\.2.*between 0 and 1"):
        run(path)
    table = tmp_path / "a.csv"
    table.write_text("model,preference,len_1,len_2\n" + "m,1.5,3,4\n" * 30 + "m,1.5,-3,4\n")
    assert "line 32: has -3 in `len_1`" in figures(table)["bad"][0]


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    lines = ["model,preference,len_1,len_2", *(f"m,{1 + n % 9 / 10},10,{n}" for n in range(800))]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([*lines[:300], '"m,1.5,10,20', *lines[300:]]))
    with pytest.raises(BrokenFile, match="line 301"):
        run(path)
    closed = [*lines[:300], '"m,1.5,10,20', *lines[300:500], 'm",1.5,10,20', *lines[500:]]
    path.write_text("\n".join(closed))
    with pytest.raises(BrokenFile, match="line 301"):
        run(path)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("model,preference,len_1,len_2", "m,1,5,3,4"),
        ("model,preference,len_1,len_2", "m,1.5,3"),
        ("model,preference,preference", "m,1.5,1.2"),
    ],
)
def test_a_table_whose_rows_do_not_match_its_columns(tmp_path: Path, header: str, row: str) -> None:
    """A decimal comma would be a preference of 1, and every row a loss."""
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *[row] * 30]))
    with pytest.raises(BrokenFile, match=r"fields|two columns"):
        run(path)


def test_a_judge_is_never_asked_for_in_vain(published: Path, tmp_path: Path) -> None:
    llmbar = published / "llmbar" / "verdicts.csv.gz"
    computed = figures(llmbar, "--judge", "ChatGPT-0301/CoT")["evaluators"]
    assert {evaluator["evaluator"] for evaluator in computed} == {"ChatGPT-0301/CoT"}
    folder = published / "pandalm"
    for files in ([llmbar], [folder / "testset-v1.json", folder / "pandalm-7b-testset-v1.json"]):
        with pytest.raises(BadInput, match="no judgment of 'nobody'"):
            run(*files, "--judge", "nobody")
    (results,) = (published / "rewardbench").glob("subset_scores*.json")
    with pytest.raises(BadInput, match="no judgment of 'nobody'"):
        run(results, "--judge", "nobody")


def test_a_missing_subset_leaves_no_overall(published: Path, tmp_path: Path) -> None:
    (file,) = (published / "rewardbench").glob("subset_scores*.json")
    results = json.loads(file.read_text())
    del results["hep-go"]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results))
    computed = figures(path)
    assert (computed["overall"], computed["incomplete"]) == (None, {"Reasoning": ["hep-go"]})
    assert "hep-go" in computed["warnings"][0]


def test_rewards_that_are_missing_make_their_subset_invalid(tmp_path: Path) -> None:
    rows = [{"subset": "hep-go", "chosen_reward": None if n < 5 else 1, "rejected_reward": 0} for n in range(20)]
    rows += [{"subset": "hep-js", "chosen_reward": 1, "rejected_reward": 0} for _ in range(20)]
    computed = invalid(write(tmp_path / "a.jsonl", *rows))
    assert computed["subsets"] == {"hep-go": None, "hep-js": 1}
    assert computed["incomplete"]["Reasoning"].count("hep-go") == 1
    assert "5 of 20 pairs cannot be used (5 without a reward)" in computed["reasons"][0]
