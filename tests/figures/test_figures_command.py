"""`steerboard figures`: the same numbers from the command line, of published files and of small flawed ones."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import annotation, figures, invalid, run, write
from steerboard_contracts.errors import BadInput


def test_alpaca_eval_with_length_control_equals_the_leaderboard(published: Path) -> None:
    folder = published / "alpaca_eval"
    computed = figures(
        folder / "preferences_compact.csv.gz",
        "--difficulty",
        folder / "instruction_difficulty_recovered.csv",
        "--weights",
        folder / "glm_weights_published.csv",
    )
    with (folder / "leaderboard.csv").open() as file:
        leaderboard = {row[""]: row for row in csv.DictReader(file)}
    assert {model["model"] for model in computed["models"]} == set(leaderboard)
    for model in computed["models"]:
        row = leaderboard[model["model"]]
        for name in ("win_rate", "standard_error", "discrete_win_rate"):
            assert model[name] == pytest.approx(float(row[name]), abs=1e-6)
        assert (model["wins"], model["losses"], model["draws"], model["n"]) == tuple(
            int(row[name]) for name in ("n_wins", "n_wins_base", "n_draws", "n_total")
        )
        assert model["length_controlled"] == pytest.approx(float(row["length_controlled_winrate"]), abs=1e-6)


def difficulties(path: Path, number: int) -> Path:
    path.write_text("index,instruction_difficulty\n" + "".join(f"{n},{n % 7 - 3}\n" for n in reversed(range(number))))
    return path


def test_annotations_give_the_figures_of_the_table_that_was_made_of_them(published: Path, tmp_path: Path) -> None:
    """d is in both the baseline's length less the model's, as in the gamed rows and the published weights."""
    folder = published / "alpaca_eval"
    with gzip.open(folder / "preferences_compact.csv.gz", "rt") as file:
        table = [row for row in csv.DictReader(file) if row["model"] == "claude-2"]
    rows = [
        {
            "instruction": f"do {row['row']}",
            "generator_1": "gpt4_1106_preview",
            "output_1": "b" * int(row["len_1"]),
            "generator_2": row["model"],
            "output_2": "m" * int(row["len_2"]),
            "preference": row["preference"],
        }
        for row in table
    ]
    control = ["--difficulty", folder / "instruction_difficulty_recovered.csv"]
    control += ["--gamed", folder / "df_gamed_reconstructed.csv", "--c", 2.7825594022071245]
    by_place = figures(write(tmp_path / "unsaid.jsonl", *reversed(rows)), *control)["models"][0]
    assert (by_place["length_controlled"], "--in-order" in by_place["why"]) == (None, True)
    control.append("--in-order")
    (mine,) = figures(write(tmp_path / "annotations.jsonl", *rows), *control)["models"]
    assert mine["length_controlled"] == pytest.approx(28.155196, abs=0.01)
    assert mine["weights"]["length"] == pytest.approx(-1.873969, abs=0.001)
    compact = {model["model"]: model for model in figures(folder / "preferences_compact.csv.gz", *control)["models"]}
    for name in ("win_rate", "standard_error", "length_controlled"):
        assert mine[name] == pytest.approx(compact["claude-2"][name], abs=1e-9)


def test_an_unreadable_annotation_does_not_move_the_prompts_behind_it(tmp_path: Path) -> None:
    hard = difficulties(tmp_path / "difficulty.csv", 40)
    good = [annotation(n, 1 + (n * 37 % 100) / 100) for n in range(40)]
    whole = [*good[:3], {**good[3], "preference": 7}, *good[4:]]
    rate = "length_controlled_no_regularisation"
    (model,) = figures(write(tmp_path / "a.jsonl", *whole), "--difficulty", hard, "--c", 100, "--in-order")["models"]
    said = [{**row, "index": n} for n, row in enumerate(good) if n != 3]
    (wanted,) = figures(write(tmp_path / "b.jsonl", *said), "--difficulty", hard, "--c", 100)["models"]
    assert model[rate] == wanted[rate] is not None
    hard.write_text("instruction_difficulty\n" + "".join(f"{n % 7 - 3}\n" for n in range(40)))
    assert figures(tmp_path / "b.jsonl", "--difficulty", hard, "--c", 100)["models"] == [wanted]
    assert (model["n"], "note" in model, wanted["note"]) == (
        *(39, True),
        "the rows' own numbers are taken for the benchmark's prompts",
    )
    short = figures(write(tmp_path / "c.jsonl", *good[:20]), "--difficulty", hard, "--c", 100, "--in-order")
    assert "the first 20" in short["models"][0]["note"]
    broken = figures(
        write(tmp_path / "d.jsonl", *good[:3], "{", *good[4:]), "--difficulty", hard, "--c", 100, "--in-order"
    )
    assert broken["bad_rows"] == 1
    assert "d.jsonl, line 4 cannot be read" in broken["models"][0]["why"]


def test_one_instruction_that_stands_twice_is_two_prompts_unless_its_baseline_says_the_same(tmp_path: Path) -> None:
    rows = [annotation(0, 1), annotation(1, 2, instruction="Question 0"), annotation(2, 2), annotation(2, 1.5)]
    (mine,) = figures(write(tmp_path / "a.jsonl", *rows), "--repeats", "last")["models"]
    assert (mine["n"], mine["superseded"], mine["win_rate"]) == (3, 1, pytest.approx(50))


def test_tables_as_spreadsheets_write_them(tmp_path: Path) -> None:
    """A byte order mark, an index, blank lines, places as decimals, holes, and rows that cannot be read."""
    lines = ["\ufeff, Model ,PREFERENCE,len_1,len_2,index", "0,m,1.75,10,20,0.0", "", "1,m,,11,22,1.0"]
    lines += [
        "2,m,nan,11,22,2",
        "3,m,0,9,5,3.0",
        "4,m,3,9,5,4",
        "5,m,x,9,5,5",
        "6,m,1.5,,,",
        "7,,1.5,1,1,7",
        "8,m,1,1,1,-1",
    ]
    path = tmp_path / "table"
    path.write_bytes(gzip.compress("\r\n".join(lines).encode()))
    assert invalid(path)["models"][0]["win_rate"] is None
    computed = figures(path, "--threshold", 0.7)
    (mine,) = computed["models"]
    assert (mine["model"], mine["n"], mine["nulls"], mine["win_rate"]) == ("m", 3, 2, pytest.approx(175 / 3))
    assert (computed["rows"], computed["bad_rows"]) == (5, 4)
    assert [reason.split(":")[0] for reason in computed["bad"]] == [f"table, line {line}" for line in (7, 8, 10, 11)]


@pytest.mark.parametrize("row", ["0,m,1.5", "0,m,1,5,10,20,0"])
def test_a_table_whose_rows_are_not_as_long_as_its_header_is_refused(tmp_path: Path, row: str) -> None:
    """A decimal comma would move every column after it."""
    path = tmp_path / "a.csv"
    path.write_text(f"index,model,preference,len_1,len_2,place\n{row}\n")
    with pytest.raises(BadInput, match="not as many fields as the 6 columns, in the row that begins on line 2"):
        figures(path)


def test_a_table_without_its_columns_or_in_another_encoding_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("model,score\nm,1\n")
    with pytest.raises(BadInput, match=r"a\.csv has no column 'preference'; it has model, score"):
        figures(path)
    path.write_bytes("model,preference\nm\u00e9,1\n".encode("utf-16"))
    with pytest.raises(BadInput, match="not UTF-8"):
        figures(path)
    path.write_bytes(gzip.compress(b"model,preference\n" * 99)[:20])
    with pytest.raises(BadInput, match="gzip stream is damaged"):
        figures(path)
    path.write_text("preference\n1.5\n")
    assert "neither `model` nor `generator_2`" in invalid(path)["bad"][0]


def test_weights_are_known_by_their_columns_and_need_difficulties(tmp_path: Path) -> None:
    rows = write(tmp_path / "a.jsonl", *(annotation(n, 1.5) for n in range(20)))
    weights = tmp_path / "weights.csv"
    weights.write_text(
        ",model,instruction_difficulty,np.tanh(std_delta_len),not_gamed_baseline.astype(float)\n0,mine,0,-1,0.5\n"
    )
    (mine,) = figures(rows, "--weights", weights)["models"]
    assert mine["weights"] == {"length": -1, "difficulty": 0, "model": 0.5}
    assert mine["length_controlled"] == pytest.approx(100 / (1 + 2.718281828459045**-0.5))
    weights.write_text("a,b,c,d\nmine,-1,1,0.5\n")
    (mine,) = figures(rows, "--weights", weights)["models"]
    assert (mine["length_controlled"], "need the difficulties" in mine["why"]) == (None, True)
    few = difficulties(tmp_path / "difficulty.csv", 12)
    (mine,) = figures(rows, "--weights", weights, "--difficulty", few, "--in-order")["models"]
    assert (mine["length_controlled"], "no difficulty for the prompt at 12" in mine["why"]) == (None, True)
    gamed = tmp_path / "gamed.csv"
    gamed.write_text("preference,std_delta_len,instruction_difficulty\n1.5,0,0\n")
    with pytest.raises(BadInput, match="gamed baselines come with difficulties"):
        figures(rows, "--gamed", gamed)


def test_gamed_rows_with_draws_as_zero_and_holes(tmp_path: Path) -> None:
    rows = write(tmp_path / "a.jsonl", *(annotation(n, 1 + n % 10 / 10) for n in range(40)))
    hard = difficulties(tmp_path / "difficulty.csv", 40)

    def controlled(*preferences: str) -> float:
        path = tmp_path / "gamed.csv"
        lines = [f"{p},{n - 2},{n % 3}" for n, p in enumerate(preferences * 10)]
        path.write_text("preference,std_delta_len,instruction_difficulty\n" + "\n".join(lines))
        (mine,) = figures(rows, "--difficulty", hard, "--gamed", path, "--c", 100, "--in-order")["models"]
        return float(mine["length_controlled"])

    assert (
        controlled("1.9", "0", "1.2")
        == controlled("1.9", "1.5", "1.2")
        == pytest.approx(controlled("0.9", "0.5", "0.2"))
    )
    assert controlled("1.9", "", "1.2") != controlled("1.9", "0", "1.2")


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
    computed = figures(file, "--threshold", 0.5, "--repeats", "last")
    (mine,) = computed["models"]
    assert (mine["n"], mine["nulls"], mine["superseded"]) == (3, 1, 1)
    assert mine["win_rate"] == pytest.approx(100 * (1 + 0.5 + 1) / 3)
    assert computed["bad_rows"] == 1
    assert "line 6" in computed["bad"][0]
    assert mine["length_controlled"] is None
    assert "length" in mine["why"]


def test_fastchat_scores_of_several_models_are_ranked(published: Path) -> None:
    files = sorted((published / "arena_hard" / "arena-bench-v1_single").glob("*.gz"))
    computed = figures(*files)
    assert len(computed["models"]) == 5
    assert computed["items_of_all"] == 285
    assert computed["friedman"]["statistic"] == pytest.approx(586.157, abs=1e-3)


def test_two_turns_of_a_question_are_one_item_of_friedmans_test(tmp_path: Path) -> None:
    rows = [
        {"question_id": q, "model": model, "turn": turn, "judge": ["j", "t"], "score": score + q % 2 * turn}
        for q in range(12)
        for model, score in (("a", 3), ("b", 5), ("c", 5 if q % 3 else 4))
        for turn in (1, 2)
        if (model, turn, q) != ("c", 2, 0)
    ]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert (computed["items_of_all"], computed["friedman"]["items"], computed["judges"]) == (12, 12, {"j": 71})
    assert computed["rank_scores"] == {"a": 1, "b": pytest.approx((8 * 2.5 + 4 * 3) / 12), "c": pytest.approx(28 / 12)}
    only = figures(write(tmp_path / "b.jsonl", rows[0], {**rows[4], "question_id": 5}))
    assert (only["items_of_all"], only["friedman"]) == (0, None)


def test_arena_hard_says_whom_it_cannot_rate_and_which_rows_are_superseded(tmp_path: Path) -> None:
    def row(model: str, question: str, *labels: str | None, **more: object) -> dict[str, Any]:
        return {
            "question_id": question,
            "model": model,
            "judge": "j",
            "games": [{"score": label} for label in labels],
            **more,
        }

    rows = [row("m", "1", "A=B", "A=B", tstamp=9), row("m", "2", "B>A", None), row("m", "1", "A>B", "A>>B", tstamp=8)]
    computed = invalid(write(tmp_path / "a.jsonl", *rows, row("silent", "1", None, "a>b")), "--threshold", 0.5)
    assert (computed["baseline"], computed["unparsed"], computed["superseded"]) == ("gpt-4-0314", 3, 1)
    assert computed["unrated"] == ["silent"]
    assert computed["models"][0]["win_rate"] == pytest.approx(100 * 2 / 3, abs=1e-6)


def test_a_review_that_stands_twice_counts_once(tmp_path: Path) -> None:
    row = {"question_id": 1, "answer1_id": "x", "answer2_id": "y", "text": "t", "score": [8, 7]}
    rows = row, {**row, "score": ["6", "9"]}, {**row, "question_id": 2}
    computed = figures(write(tmp_path / "a.jsonl", *rows), "--repeats", "last")
    (file,) = computed["files"]
    assert (file["total_1"], file["total_2"], file["n"], file["superseded"]) == (14, 16, 2, 1)
    assert file["share_1"] == pytest.approx(14 / 16)


def test_rewards_that_are_missing_are_lost_and_rows_without_a_subset_counted(tmp_path: Path) -> None:
    rows = [{"subset": "hep-go", "score_chosen": chosen, "score_rejected": 1} for chosen in (None, [2], "2", "NaN", 1)]
    rows += [{"subset": "hep-go"}, {"score_chosen": 1, "score_rejected": 0}, {**rows[0], "score_chosen": "high"}]
    computed = figures(write(tmp_path / "a.jsonl", *rows, "{"), "--threshold", 0.7)
    assert (computed["subsets"], computed["without_reward"], computed["rows"], computed["bad_rows"]) == (
        {"hep-go": 0.4},
        2,
        5,
        4,
    )
    other = write(tmp_path / "b.jsonl", annotation(1, 1.5))
    assert invalid(tmp_path / "a.jsonl", other)["bad_rows"] == 5
    with pytest.raises(BadInput, match=r"b\.jsonl has no row of a subset with two rewards"):
        figures(other, "--format", "rewardbench")


def test_results_of_rewardbench_with_a_mark_texts_and_holes(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('\ufeff{"hep-go": "0.5", "hep-js": NaN, "model": "m",\n "hep-cpp": 1}')
    computed = figures(path)
    assert computed["sections"] == {"Reasoning": 0.75}
    assert "hep-js" in computed["incomplete"]["Reasoning"]


def test_a_format_that_does_not_exist_and_a_file_of_none(tmp_path: Path) -> None:
    rows = write(tmp_path / "a.jsonl", {"choices": 5, "model_id": "m"})
    with pytest.raises(BadInput, match="there is no format 'alpaca'"):
        figures(rows, "--format", "alpaca")
    with pytest.raises(BadInput, match="holds answers"):
        figures(rows)


def test_results_files_of_several_models_are_a_result_each(published: Path, tmp_path: Path) -> None:
    (file,) = (published / "rewardbench").glob("subset_scores*.json")
    mine = json.loads(file.read_text())
    other, unnamed = tmp_path / "other.json", tmp_path / "unnamed.json"
    other.write_text(json.dumps({**mine, "model": "other", "hep-cpp": 0.0}))
    unnamed.write_text(json.dumps({name: value for name, value in mine.items() if name not in ("model", "math-prm")}))
    computed = figures(file, other, unnamed)
    results = {result["judge"]: result for result in computed["results"]}
    assert list(results) == [mine["model"], "other", "unnamed.json"]
    assert results[mine["model"]]["overall"] == figures(file)["overall"] > results["other"]["overall"]
    assert results["unnamed.json"]["overall"] is None
    assert figures(file, other, "--judge", "other")["overall"] == results["other"]["overall"]
    twice = figures(file, shutil.copy(file, tmp_path / "again.json"))
    assert [result["judge"] for result in twice["results"]] == [file.name, "again.json"]
    with pytest.raises(BadInput, match="others are not"):
        run(file, write(tmp_path / "pairs.jsonl", {"subset": "hep-go", "chosen_reward": 1, "rejected_reward": 0}))


def test_rewardbench_of_a_results_file_and_of_pairs(published: Path, tmp_path: Path) -> None:
    (file,) = (published / "rewardbench").glob("subset_scores*.json")
    computed = figures(file)
    assert computed["overall"] == pytest.approx(0.77377, abs=1e-5)
    assert len(computed["subsets"]) == 23, "a field that describes the model is no subset"
    pairs = tmp_path / "pairs.jsonl"
    rows = [("math-prm", 1.0, 0.5), ("math-prm", 0.5, 0.5), ("hep-cpp", [2.0], [1.0])]
    pairs.write_text(
        "".join(json.dumps({"subset": s, "chosen_reward": c, "rejected_reward": r}) + "\n" for s, c, r in rows)
    )
    computed = figures(pairs)
    assert computed["subsets"] == {"math-prm": 0.5, "hep-cpp": 1.0}
    assert computed["sections"]["Reasoning"] == pytest.approx((0.5 * 984 + 164) / (984 + 164))
    assert computed["overall"] is None


def test_pairs_in_both_orders(tmp_path: Path) -> None:
    def game(question: int, first: str | None, second: str, **more: object) -> dict[str, Any]:
        names = {"question_id": question, "model_1": "a", "model_2": "b", "turn": 1, "judge": ["gpt-4", "pair-v2"]}
        return {**names, "g1_winner": first, "g2_winner": second, **more}

    file = tmp_path / "pair.jsonl"
    games = [("model_1", "model_1"), ("model_1", "model_2"), ("tie", "tie"), ("error", "model_1"), (None, "model_1")]
    rows = [game(question, *winners) for question, winners in enumerate(games)]
    older = game(0, "model_2", "model_2", tstamp=1.0)
    computed = figures(write(file, *[{**row, "tstamp": 2.0} for row in rows], older), "--threshold", 0.5)
    a = next(model for model in computed["models"] if model["model"] == "a")
    assert (a["wins"], a["ties"], a["losses"], a["flips"], a["errors"]) == (1, 2, 0, 1, 2)
    assert (computed["superseded"], computed["one_order"]) == (1, 0)
    assert a["win_rate_adjusted"] == pytest.approx(2 / 3)
