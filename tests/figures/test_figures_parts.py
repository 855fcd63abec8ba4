"""Losses that hide: several kinds of them, those of a part, of a judge or a model of whom nothing is left."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import annotation, figures, invalid, run, single, write
from steerboard_contracts.errors import BadInput, SteerboardError


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_of_no_one_add_to_those_that_were_not_parsed(tmp_path: Path) -> None:
    rows = [*(single(n, 7) for n in range(92)), *(single(n, -1) for n in range(92, 96))]
    assert figures(write(tmp_path / "a.jsonl", *rows))["models"][0]["average"] == 7
    computed = invalid(write(tmp_path / "b.jsonl", *rows, *["{"] * 4))
    assert computed["models"][0]["average"] is None
    assert "4.2% of its judgments cannot be used, nor 4.0% of the rows in b.jsonl" in computed["reasons"][0]


def test_a_category_and_a_turn_have_no_mean_of_what_is_left_of_them(tmp_path: Path) -> None:
    # The 8 are of math, whose questions are 111 to 120, in the second turn.
    rows = [single(n, -1 if 111 <= n < 119 and turn == 2 else 5, turn=turn) for n in range(81, 161) for turn in (1, 2)]
    computed = invalid(write(tmp_path / "a.jsonl", *rows))
    (model,) = computed["models"]
    assert (model["valid"], model["average"]) == (True, 5)
    assert (model["categories"]["math"], model["categories"]["stem"]) == (None, 5)
    assert model["turns"] == {"1": 5, "2": None}
    assert model["partial"] == {"categories": {"math": 5}, "turns": {"2": 5}}
    assert {reason.split(":")[0] for reason in computed["reasons"]} == {"m, math", "m, turn 2"}


def test_two_models_whose_battles_are_lost_have_no_cell(tmp_path: Path) -> None:
    def battle(n: int, a: str, b: str, winner: str | None) -> dict[str, Any]:
        return {"id": f"{a}{b}{n}", "model_a": a, "model_b": b, "winner": winner}

    many = [battle(n, name, "c", "model_a" if n % 3 else "model_b") for n in range(300) for name in "ab"]
    few = [battle(n, "a", "b", "model_a" if n < 10 else None) for n in range(20)]
    computed = invalid(write(tmp_path / "a.jsonl", *many, *few))
    assert computed["matrix"]["a"]["b"] is computed["matrix"]["b"]["a"] is None
    assert computed["matrix"]["a"]["c"] == pytest.approx(2 / 3)
    assert all(model["rating"] is not None for model in computed["models"])
    assert computed["reasons"][0].startswith("a against b: 10 of 20 battles cannot be used")


def test_a_judge_of_annotations_is_not_diluted(tmp_path: Path) -> None:
    good = [annotation(n, 1.9, annotator="large") for n in range(480)]
    small = [annotation(n, 1.9, annotator="small") for n in range(40)]
    nameless = [{key: row[key] for key in row if key not in ("generator_2", "generator_1")} for row in small[20:]]
    computed = invalid(write(tmp_path / "a.jsonl", *good, *small[:20], *nameless))
    rates = {result["judge"]: result["models"][0]["win_rate"] for result in computed["results"]}
    assert rates == {"large": pytest.approx(90), "small": None}


def test_a_judge_and_a_reward_model_of_whom_nothing_can_be_read_are_named(tmp_path: Path) -> None:
    good = [single(n, 7, judge=["one", "single-v1"]) for n in range(200)]
    computed = invalid(
        write(tmp_path / "a.jsonl", *good, *(single(n, 70, judge=["other", "single-v1"]) for n in range(9)))
    )
    assert "judge other: none of its 9 rows can be used" in computed["reasons"]
    pairs = [{"subset": "hep-go", "chosen_reward": n, "rejected_reward": 1, "model": "A", "id": n} for n in range(100)]
    mute = [{**row, "model": "B", "chosen_reward": "high"} for row in pairs]
    computed = invalid(write(tmp_path / "b.jsonl", *pairs, *mute))
    assert "B: none of its 100 rows can be used" in computed["reasons"]


@pytest.mark.parametrize("name", ["annotator", "voter"])
def test_judges_are_told_apart_by_whatever_field_names_them(tmp_path: Path, name: str) -> None:
    rows = [
        {key: value for key, value in single(n, score).items() if key != "judge"} | {name: who}
        for n in range(40)
        for who, score in (("kind", 9), ("hard", 3))
    ]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert {result["judge"]: result["models"][0]["average"] for result in computed["results"]} == {"kind": 9, "hard": 3}


def test_a_number_beside_a_refusal_is_no_verdict(tmp_path: Path) -> None:
    good = [single(n, 8) for n in range(100)]
    for bad in ({"status": "refused"}, {"judgment": "$ERROR$"}):
        computed = figures(write(tmp_path / "a.jsonl", *good, single(200, 1, **bad)))
        assert (computed["models"][0]["average"], computed["models"][0]["unparsed"]) == (8, 1)
    computed = figures(
        write(tmp_path / "b.jsonl", *(annotation(n, 1.9) for n in range(50)), annotation(60, 0, status="error"))
    )
    assert (computed["models"][0]["win_rate"], computed["models"][0]["nulls"]) == (pytest.approx(90), 1)


def test_nothing_is_compared_with_itself(tmp_path: Path) -> None:
    computed = invalid(table(tmp_path / "a.csv", "generator_1,generator_2,preference", *["m,m,1.9"] * 20))
    assert computed["bad"][0].endswith("compares a model with itself")
    games = {"model": "m", "baseline": "m ", "judge": "j", "games": [{"score": "A>B"}, {"score": "B>A"}]}
    assert invalid(write(tmp_path / "b.jsonl", *({**games, "question_id": n} for n in range(9))))["bad_rows"] == 9
    review = {"answer1_id": "x", "answer2_id": "x", "text": "", "score": [9, 3]}
    computed = invalid(write(tmp_path / "c.jsonl", *({**review, "question_id": n} for n in range(9))))
    assert computed["bad_rows"] == 9


def test_a_review_that_was_not_parsed_is_no_flip(tmp_path: Path) -> None:
    def review(n: int, first: str, other: str, score: list[int]) -> dict[str, Any]:
        return {"question_id": n, "answer1_id": f"{first}{n}", "answer2_id": f"{other}{n}", "text": "", "score": score}

    straight = [review(n, "x", "y", [9, 3]) for n in range(40)]
    computed = invalid(write(tmp_path / "a.jsonl", *(review(n, "y", "x", [-1, -1]) for n in range(40)), *straight))
    (file,) = computed["files"]
    assert file["flip_rate"] is None
    assert "40 with the other order unparsed" in file["reason"]


def test_weights_are_compared_only_with_those_of_one_baseline_and_variant(tmp_path: Path) -> None:
    rows = [
        annotation(n, 1.3 if n % 2 else 1.8, generator_1=base, generator_2=model, output_2="m" * (n + 2))
        for n in range(60)
        for base, model in (("base", "A"), ("base", "B"))
    ]
    path = write(tmp_path / "a.jsonl", *rows)
    computed = figures(path, "--c", 10, "--baseline", "B")
    against = {model["model"]: model["against"] for model in computed["models"]}
    assert against["A"]["length_controlled_minimal"] is not None
    assert "length_controlled" not in against["A"]
    mixed = [row | ({"generator_1": "other"} if row["generator_2"] == "B" else {}) for row in rows]
    with pytest.raises(BadInput, match="weights against one say nothing about another"):
        run(write(tmp_path / "b.jsonl", *mixed), "--c", 10, "--baseline", "B")
    names = "model,np.tanh(std_delta_len),instruction_difficulty,not_gamed_baseline.astype(float),variant"
    weights = table(tmp_path / "w.csv", names, "A,-1,0,0.8,minimal", "B,-1,0,0.2,no_regularisation")
    with pytest.raises(BadInput, match="weights of A are of the variant minimal"):
        run(path, "--weights", weights, "--baseline", "B")


def test_gamed_baselines_without_a_preference_are_none(tmp_path: Path) -> None:
    hard = table(tmp_path / "hard.csv", "index,instruction_difficulty", *(f"{n},{n / 40}" for n in range(40)))
    gamed = table(tmp_path / "g.csv", "preference,std_delta_len,instruction_difficulty", ",0.1,0.2", ",0.2,0.1")
    rows = table(tmp_path / "r.csv", "model,preference,len_1,len_2,row", *(f"m,1.5,{9 + n},9,{n}" for n in range(40)))
    with pytest.raises(SteerboardError, match="has no row with a preference"):
        run(rows, "--difficulty", hard, "--gamed", gamed)


def test_texts_tell_the_prompt_and_not_the_number_of_the_row(tmp_path: Path) -> None:
    hard = table(tmp_path / "hard.csv", "instruction_difficulty", *(f"{n / 40}" for n in range(40)))
    prompts = write(tmp_path / "p.jsonl", *({"instruction": f"Question {n}"} for n in range(40)))
    rows = [annotation(n, 1.2 if n % 3 else 1.9, output_1="b" * (n % 7 + 1)) for n in range(40)]
    more = ("--difficulty", hard, "--prompts", prompts, "--c", 10)
    key = "length_controlled_no_regularisation"
    expected = figures(write(tmp_path / "a.jsonl", *rows), *more)["models"][0][key]
    shuffled = [{**row, "index": place} for place, row in enumerate(rows[::-1])]
    assert figures(write(tmp_path / "b.jsonl", *shuffled), *more)["models"][0][key] == pytest.approx(expected)


def test_an_unclosed_quote_among_ids_that_are_hashes_is_seen(tmp_path: Path) -> None:
    rows = [f"h{n}x,x,y,{'model_b' if n % 3 else 'model_a'},hi {n},ho {n}" for n in range(20)]
    rows[7], rows[10] = 'h7x,x,y,model_a,"hi 7,ho 7', 'h10x,x,y,model_b,hi 10",ho 10'
    path = table(tmp_path / "a.csv", "question_id,model_a,model_b,winner,conversation_a,conversation_b", *rows)
    with pytest.raises(SteerboardError, match="a text goes over lines that are rows of their own"):
        run(path)


def test_leaderboards_are_joined_by_names(tmp_path: Path) -> None:
    first = table(tmp_path / "1.csv", "score,name", "1,a", "2,b", "3,c", "4,d")
    other = table(tmp_path / "2.csv", "score,name", "4,a", "3,b", "2,c", "1,d")
    assert figures(first, other, "--format", "leaderboards")["spearman"] == pytest.approx(-1)
    indexed = table(tmp_path / "3.csv", ",name,score", "0,d,4", "1,c,3", "2,b,2", "3,a,1")
    assert figures(indexed, other, "--format", "leaderboards")["spearman"] == pytest.approx(-1)
    nameless = table(tmp_path / "4.csv", ",score", "0,4", "1,3", "2,2")
    with pytest.raises(BadInput, match="has no column with the models' names"):
        run(nameless, other, "--format", "leaderboards")
    long = table(tmp_path / "5.csv", "model,score", *(f"m{n},{n}" for n in range(20)), "a,1", "b,5", "c,9")
    wide = table(tmp_path / "6.csv", "model,score", *(f"n{n},{n}" for n in range(20)), "a,1", "b,5", "c,9")
    assert "only 3 models are in both" in figures(long, wide, "--format", "leaderboards")["warnings"][0]


def test_turns_that_python_printed_are_no_answers(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "**So**"}]
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model_a", "model_b", "winner", "conversation_a", "conversation_b"])
        for n in range(60):
            writer.writerow(["ab"[n % 2], "c", "model_a" if n % 3 else "model_b", str(turns), json.dumps(turns)])
    assert figures(path)["style_controlled"] is None


def test_equal_items_have_no_interval(tmp_path: Path) -> None:
    model = figures(write(tmp_path / "a.jsonl", *(single(n, 5) for n in range(80))))["models"][0]
    assert (model["average"], model["low"], model["high"]) == (5, None, None)
    games = [{"score": "B>A"}, {"score": "A>B"}]
    row = {"question_id": 1, "model": "m", "baseline": "base", "judge": "j", "games": games}
    computed = figures(write(tmp_path / "b.jsonl", row))
    assert {(model["low"], model["high"]) for model in computed["models"]} == {(None, None)}


def test_odd_texts_and_numbers_are_answered(tmp_path: Path) -> None:
    pair = '{"subset": "\\ud800", "chosen_reward": 1, "rejected_reward": 0}'
    assert list(figures(write(tmp_path / "a.jsonl", pair))["subsets"]) == ["?"]
    results = tmp_path / "r.json"
    for seed in ("9" * 39, "9" * 400):
        results.write_text(f'{{"hep-go": 0.5, "seed": {seed}}}')
        assert run(results)[1]["subsets"]["hep-go"] == 0.5
    results.write_text('{"hep-go": 1e999}')
    with pytest.raises(BadInput, match="not an accuracy"):
        run(results)


def test_a_file_and_its_gzipped_copy_are_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *(single(n, 5) for n in range(9)))
    zipped = tmp_path / "a.jsonl.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(BadInput, match="would count twice"):
        run(path, zipped)


def test_instructions_with_other_inputs_are_other_prompts(tmp_path: Path) -> None:
    rows = [annotation(n, 1.9, instruction="Classify", input=f"text {n}", output_1="b") for n in range(30)]
    assert figures(write(tmp_path / "a.jsonl", *rows))["models"][0]["n"] == 30
