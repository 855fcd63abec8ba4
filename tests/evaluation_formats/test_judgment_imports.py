"""Judgments of other projects: every row becomes a verdict or is named; exported and imported again unchanged."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from formats_world import ROOT, FormatsWorld, jsonl


def single(question_id: int, model: str, score: float | None, turn: int = 1, **more: object) -> dict[str, Any]:
    row = {"question_id": question_id, "model": model, "judge": ["gpt-4", "single-v1"], "judgment": "text"}
    return {**row, "score": score, "turn": turn, "tstamp": 1000.5, **more}


def pair(question_id: int, g1: str, g2: str | None, **more: object) -> dict[str, Any]:
    row = {"question_id": question_id, "model_1": "a", "model_2": "b", "g1_winner": g1, "g1_judgment": "first"}
    other = {} if g2 is None else {"g2_winner": g2, "g2_judgment": "second"}
    return {**row, **other, "judge": ["gpt-4", "pair-v2"], "turn": 1, "tstamp": 5.0, **more}


def test_a_real_file_with_failed_and_repeated_judgments(world: FormatsWorld, published: Path) -> None:
    world.evaluation(published / "fastchat" / "mt_bench" / "question.jsonl")
    path = published / "fastchat" / "mt_bench_single_llama3_with_errors.jsonl"
    assert world.refused("evaluations/e/judgments", path)["code"] == "nothing_matches"
    imported = world.judgments(path, add_entrants="true")
    assert sorted(imported["entrants_added"]) == ["Meta-Llama-3-8B-Instruct-Griffin", "Meta-Llama-3-8B-Instruct-Normal"]
    assert (imported["rows"], imported["verdicts"], imported["ok"], imported["unparsed"], imported["duplicates"]) == (
        330,
        330,
        320,
        0,
        10,
    )
    judge = imported["judge"]
    assert (judge["model"], judge["style"], judge["family"], judge["superseded"]) == ("gpt-4", "single", "gpt", 10)
    rows = world.verdicts(judge["name"])
    old = [row for row in rows if row[9]]
    assert Counter(row[7] for row in old) == {"ok": 6, "error": 4}
    means: Counter[int] = Counter()
    for _, turn, model, *_, value, _, status, _, superseded in rows:
        if model.endswith("Normal") and status == "ok" and not superseded:
            means[turn] += value
    assert {turn: total / 80 for turn, total in means.items()} == {1: 8.275, 2: 7.2625}


def test_scores_are_kept_as_they_are_stored(world: FormatsWorld) -> None:
    """-1 and null were not parsed; anything else from 1 to 10 counts, decimals too, and what is outside is named."""
    world.questions(6)
    world.entrants("m")
    outside = world.refused("evaluations/e/judgments", jsonl([single(81, "m", 5), single(82, "m", 15)]))
    assert [place["location"] for place in outside["errors"]] == ["line 2"]
    rows = [single(81 + n, "m", score) for n, score in enumerate((9.5, -1, None, 1, 10))]
    rows.append({**single(86, "m", -1), "judgment": "$ERROR$"})
    imported = world.judgments(jsonl(rows), name="j")
    assert (imported["ok"], imported["unparsed"], imported["errors"], imported["refused"]) == (3, 2, 1, 0)
    assert [(row[5], row[7]) for row in sorted(world.verdicts("j"))] == [
        (9.5, "ok"),
        (None, "unparsed"),
        (None, "unparsed"),
        (1.0, "ok"),
        (10.0, "ok"),
        (None, "error"),
    ]


def test_rows_that_were_left_out_count_against_the_judge(world: FormatsWorld) -> None:
    """The rule is that of `steerboard figures`; a row without an id is not taken by its place."""
    world.questions(20)
    world.entrants("m")
    rows = [single(81 + n, "m", 5 if n < 18 else 11) for n in range(20)]
    unnamed = {**single(81, "m", 9), "question_id": None, "tstamp": 2000}
    imported = world.judgments(jsonl([*rows, unnamed]), name="j", bad_rows="skip")
    assert (imported["ok"], imported["judge"]["valid"], imported["judge"]["unparsed_rate"]) == (18, False, 0.1)
    (judge,) = world.client.get(f"{ROOT}/evaluations/e/report").json()["judges"]
    assert (judge["valid"], judge["unreadable"]) == (False, 2)
    assert "2 of 20 verdicts cannot be used (2 unreadable): more than 5%" in judge["invalid_because"]
    assert {row[5] for row in world.verdicts("j")} == {5.0}


def test_a_pair_with_its_roles_swapped_is_the_same_pair(world: FormatsWorld) -> None:
    world.questions(1)
    world.entrants("a", "b")
    swapped = pair(81, "model_2", "model_2", model_1="b", model_2="a", tstamp=9.0)
    imported = world.judgments(jsonl([pair(81, "model_2", "model_2"), swapped]), name="j")
    assert (imported["ok"], imported["duplicates"]) == (2, 2)


def test_the_newest_judgment_counts_and_older_ones_are_superseded(world: FormatsWorld) -> None:
    world.questions(1)
    world.entrants("m")
    rows = [single(81, "m", 3, tstamp=30.0), single(81, "m", 2, tstamp=20.0), single(81, "m", -1, tstamp=10.0)]
    imported = world.judgments(jsonl(rows), name="j")
    assert (imported["verdicts"], imported["duplicates"], imported["ok"], imported["unparsed"]) == (3, 2, 1, 0)
    assert {row[5]: row[9] for row in world.verdicts("j")} == {3.0: False, 2.0: True, None: True}


def test_everything_that_does_not_belong_is_named(world: FormatsWorld) -> None:
    world.questions(2)
    world.entrants("m")
    rows = [single(81, "m", 5), single(999, "m", 5), single(81, "nobody", 5), single(82, "m", 5, turn=2)]
    imported = world.judgments(jsonl(rows))
    assert (imported["rows"], imported["verdicts"], imported["unmatched_rows"]) == (4, 1, 3)
    assert [(row["line"], row["reason"]) for row in imported["unmatched"]] == [
        (2, "is about question 999, which is not one of the prompts"),
        (3, "judges nobody, which is not an entrant"),
        (4, "judges turn 2 of a prompt that has 1"),
    ]
    assert imported["judge"]["imported"]["unmatched"] == 3


def test_pairs_are_two_verdicts_by_model(world: FormatsWorld) -> None:
    world.questions(4)
    world.entrants("a", "b")
    rows = [pair(81, "model_1", "model_2"), pair(82, "tie", "error"), pair(83, "model_2", None)]
    imported = world.judgments(jsonl([*rows, pair(84, "A", "tie")]), name="j", bad_rows="skip")
    assert (imported["verdicts"], imported["ok"], imported["unparsed"], imported["skipped_rows"]) == (5, 4, 1, 1)
    assert "model_1, model_2, tie or error" in imported["skipped"][0]["reason"]
    assert {(row[0], row[4]): (row[2], row[3], row[5]) for row in world.verdicts("j")} == {
        (0, True): ("a", "b", 1.0),
        (0, False): ("a", "b", 0.0),
        (1, True): ("a", "b", 0.5),
        (1, False): ("a", "b", None),
        (2, True): ("a", "b", 0.0),
    }


def test_alpaca_eval_preferences(world: FormatsWorld) -> None:
    """generator_1 is the baseline; 0 is a draw, null is none; models enter with the outputs that the file repeats."""
    world.evaluation(json.dumps([{"instruction": f"do {n}", "dataset": "d"} for n in range(5)]).encode())
    base = {"generator_1": "gpt4_turbo", "output_1": "base", "generator_2": "m", "output_2": "mine", "annotator": "w"}
    preferences = [1.9, 0, None, 1.25]
    rows = [{"instruction": f"do {n}", **base, "preference": p} for n, p in enumerate(preferences)]
    imported = world.judgments(json.dumps(rows).encode(), name="j", add_entrants="true")
    assert (imported["ok"], imported["unparsed"], imported["judge"]["model"]) == (3, 1, "w")
    assert imported["judge"]["settings"]["baseline"] == "gpt4_turbo"
    assert [(row[2], row[3], row[4], row[5]) for row in sorted(world.verdicts("j"))] == [
        ("m", "gpt4_turbo", None, 1.9 - 1),
        ("m", "gpt4_turbo", None, 0.5),
        ("m", "gpt4_turbo", None, None),
        ("m", "gpt4_turbo", None, 0.25),
    ]
    assert {place[0]: turns for place, (turns, _) in world.responses("m").items()} == {n: ["mine"] for n in range(4)}
    bad = world.refused("evaluations/e/judgments", json.dumps([{**rows[0], "preference": 2.5}]).encode())
    assert "2.5" in bad["detail"]


@pytest.mark.parametrize("shape", ["v0.1", "v2"])
def test_arena_hard_games(world: FormatsWorld, shape: str) -> None:
    """The baseline is A in the first game and B in the second."""
    world.questions(3)
    world.entrants("m", "gpt-4-0314")
    ids = {"v0.1": "question_id", "v2": "uid"}
    more = {"v0.1": {"judge": "gpt-4-1106"}, "v2": {"judge": "gpt-4-1106", "baseline": "gpt-4-0314"}}[shape]
    said: Any = "why" if shape == "v0.1" else {"answer": "why"}

    def game(score: str | None) -> dict[str, Any]:
        return {"score": score, "judgment": said}

    rows = [
        {ids[shape]: "81", "model": "m", "games": [game("B>>A"), game("A>B")], **more},
        {ids[shape]: "82", "model": "m", "games": [game("A=B"), game("B<<A")], **more},
        {ids[shape]: "83", "model": "m", "games": [game(None), None], **more},
    ]
    imported = world.judgments(jsonl(rows), name="j")
    assert (imported["ok"], imported["unparsed"], imported["errors"]) == (4, 1, 1)
    assert {(row[0], row[4]): (row[5], row[6], row[8]) for row in world.verdicts("j")} == {
        (0, False): (1.0, 3, "why"),
        (0, True): (1.0, 1, "why"),
        (1, False): (0.5, 1, "why"),
        (1, True): (1.0, 3, "why"),
        (2, False): (None, 1, "why"),
        (2, True): (None, 1, None),
    }


def test_arena_hard_needs_its_baseline(world: FormatsWorld) -> None:
    world.questions(1)
    world.entrants("m", "base")
    row = {"question_id": "81", "model": "m", "judge": "j", "games": [{"score": "A>B"}, {"score": "B>A"}]}
    refused = world.refused("evaluations/e/judgments", jsonl([row]))
    assert "compares with gpt-4-0314" in refused["detail"]
    assert world.judgments(jsonl([row]), baseline="base")["judge"]["settings"]["baseline"] == "base"


def test_arena_bench_scores_have_no_judge(world: FormatsWorld, published: Path) -> None:
    folder = published / "arena_hard" / "arena-bench-v1_single"
    with gzip.open(folder / "claude-2.1.jsonl.gz", "rt") as file:
        ids = [json.loads(line)["question_id"] for line in file]
    world.evaluation(jsonl([{"question_id": id_, "turns": [f"q {id_}"]} for id_ in ids]))
    imported = world.judgments(folder / "claude-2.1.jsonl.gz", add_entrants="true", model="gpt-4-turbo")
    assert (imported["format"], imported["verdicts"], imported["ok"], imported["unparsed"]) == (
        "arena_bench",
        300,
        299,
        1,
    )
    assert (imported["judge"]["model"], imported["judge"]["style"]) == ("gpt-4-turbo", "single")


def test_reviews_know_models_by_their_answers(world: FormatsWorld, published: Path) -> None:
    blog = published / "vicuna_blog"
    world.evaluation(blog / "question.jsonl")
    world.answers(blog / "answer" / "answer_alpaca-13b.jsonl")
    world.answers(blog / "answer" / "answer_vicuna-7b-20230322-fp16.jsonl")
    path = blog / "review" / "vicuna-7b_20230322-fp16" / "review_alpaca-13b_vicuna-7b.jsonl"
    imported = world.judgments(path, name="j")
    assert (imported["verdicts"], imported["ok"], imported["judge"]["style"], imported["entrants_added"]) == (
        160,
        160,
        "multi",
        [],
    )
    totals: Counter[str] = Counter()
    for row in world.verdicts("j"):
        totals[row[2]] += row[5]
    assert totals == {"alpaca-13b-v1": 583.0, "vicuna-7b-20230322-fp16": 684.5}
    assert "answer_ids" not in json.dumps(world.client.get(f"{ROOT}/evaluations/e").json())


def test_reviews_without_answers_are_known_by_the_file_name(world: FormatsWorld, published: Path) -> None:
    blog = published / "vicuna_blog"
    world.evaluation(blog / "question.jsonl")
    imported = world.judgments(blog / "review" / "others" / "review_llama_alpaca-13b.jsonl", add_entrants="true")
    assert (imported["verdicts"], imported["entrants_added"]) == (160, ["llama", "alpaca-13b"])


def test_a_review_of_which_one_answer_is_of_nobody_here_is_left_out_whole(world: FormatsWorld) -> None:
    world.questions(2)
    world.entrants("a", "b")
    review = {"answer1_id": "1", "answer2_id": "2", "text": "t", "score": [8, 7], "model_1": "a"}
    rows = [{**review, "question_id": 81, "model_2": "b"}, {**review, "question_id": 82, "model_2": "nobody"}]
    imported = world.judgments(jsonl(rows))
    assert (imported["verdicts"], imported["unmatched_rows"], imported["unmatched"][0]["model"]) == (2, 1, "nobody")


def test_judgments_without_an_id_are_not_taken_by_their_place(world: FormatsWorld) -> None:
    world.questions(3)
    world.entrants("m")
    rows = [{"model": "m", "score": 5, "turn": 1}, {"model": "m", "score": 6, "turn": 1}]
    refused = world.refused("evaluations/e/judgments", jsonl(rows))
    assert (refused["code"], "has no question id" in refused["detail"]) == ("nothing_matches", True)


def test_of_several_judges_one_has_to_be_named(world: FormatsWorld) -> None:
    world.questions(2)
    world.entrants("m")
    rows = [single(81, "m", 5), single(82, "m", 6), single(81, "m", 9, judge=["claude", "single-v1"])]
    refused = world.refused("evaluations/e/judgments", jsonl(rows))
    assert (refused["code"], "gpt-4 (2 rows), claude (1 rows)" in refused["detail"]) == ("several_judges", True)
    imported = world.judgments(jsonl(rows), model="claude")
    assert (imported["verdicts"], imported["unmatched_rows"], imported["judge"]["model"]) == (1, 2, "claude")


def test_judgments_of_a_judge_and_of_nobody_are_not_merged(world: FormatsWorld) -> None:
    world.questions(3)
    world.entrants("m")
    unnamed = {key: value for key, value in single(82, "m", 6).items() if key != "judge"}
    rows = [single(81, "m", 5), unnamed, single(83, "m", 7)]
    refused = world.refused("evaluations/e/judgments", jsonl(rows))
    assert (refused["code"], "gpt-4 (2 rows), not named (1 rows)" in refused["detail"]) == ("several_judges", True)
    imported = world.judgments(jsonl(rows), model="gpt-4")
    assert (imported["verdicts"], imported["unmatched_rows"]) == (2, 1)
    assert "names no judge" in imported["unmatched"][0]["reason"]
    assert world.judgments(jsonl([unnamed]), model="claude")["judge"]["model"] == "claude"


def test_two_versions_of_a_template_are_two_judges(world: FormatsWorld) -> None:
    world.questions(2)
    world.entrants("m")
    rows = [single(81, "m", 5), single(82, "m", 6, judge=["gpt-4", "single-v2"])]
    for model in ({}, {"model": "gpt-4"}):
        refused = world.refused("evaluations/e/judgments", jsonl(rows), **model)
        assert (refused["code"], "gpt-4 (single-v2) (1 rows)" in refused["detail"]) == ("several_judges", True)
    assert world.judgments(jsonl(rows), model="gpt-4 (single-v2)")["verdicts"] == 1
    math = single(82, "m", 6, judge=["gpt-4", "single-math-v1"])
    assert world.judgments(jsonl([rows[0], math]))["judge"]["model"] == "gpt-4"


def test_reviews_keep_their_reviewer_and_time_when_they_are_exported(world: FormatsWorld) -> None:
    world.questions(2)
    world.entrants("a", "b")
    review = {"answer1_id": "1", "answer2_id": "2", "model_1": "a", "model_2": "b", "reviewer_id": "gpt-4-0328-default"}
    rows = [{**review, "question_id": 81 + n, "text": "t", "score": [8, 7], "tstamp": 50.0} for n in range(2)]
    rows.append({**rows[0], "score": [1, 2], "tstamp": 40.0})
    swapped = {"answer1_id": "2", "answer2_id": "1", "model_1": "b", "model_2": "a", "score": [9, 4], "tstamp": 60.0}
    rows.append({**rows[1], **swapped})
    judge = world.judgments(jsonl(rows))["judge"]
    assert (judge["model"], judge["superseded"]) == ("gpt-4-0328", 2)
    path = f"evaluations/e/judges/{judge['name']}/judgments"
    exported = [json.loads(line) for line in world.download(path, format="vicuna_review").splitlines()]
    assert {row["reviewer_id"] for row in exported} == {"gpt-4-0328"}
    again = world.judgments(jsonl(exported), name="again")["judge"]
    assert world.verdicts(judge["name"]) == world.verdicts(again["name"])


def test_bad_rows_are_named_and_nothing_is_stored(world: FormatsWorld) -> None:
    world.questions(1)
    world.entrants("m")
    rows = [single(81, "m", 5), {**single(81, "m", 5), "score": "five"}, single(81, "m", 5, turn=0), "{"]
    problem = world.refused("evaluations/e/judgments", jsonl(rows))
    assert [place["location"] for place in problem["errors"]] == ["line 2", "line 3", "line 4"]
    assert world.client.get(f"{ROOT}/evaluations/e").json()["judges"] == []


def test_judges_have_names(world: FormatsWorld) -> None:
    world.questions(1)
    world.entrants("m")
    file = jsonl([single(81, "m", 5)])
    assert [world.judgments(file)["judge"]["name"] for _ in range(2)] == ["gpt-4-single", "gpt-4-single-2"]
    assert world.judgments(file, name="mine")["judge"]["name"] == "mine"
    assert world.refused("evaluations/e/judgments", file, name="mine")["code"] == "name_taken"


ROUND_TRIPS: dict[str, list[dict[str, Any]]] = {
    "fastchat_single": [
        single(81, "a", 7.5),
        single(81, "a", 2, tstamp=3.25),
        single(81, "b", -1),
        single(82, "b", -1, judgment="$ERROR$"),
        single(82, "a", -1, status="refused", judgment="I cannot"),
    ],
    "fastchat_pair": [pair(81, "model_1", "model_2"), pair(81, "tie", "error", tstamp=1.0), pair(82, "model_2", None)],
    "arena_hard": [
        {"uid": "81", "model": "a", "baseline": "b", "judge": "x", "games": [{"score": "B>>A"}, {"score": "B>A"}]},
        {"uid": "82", "model": "a", "baseline": "b", "judge": "x", "games": [{"score": "?", "judgment": "t"}, None]},
    ],
    "alpaca_eval": [
        {
            "instruction": f"question {n}, turn 1",
            "generator_1": "b",
            "generator_2": "a",
            "preference": p,
            "annotator": "x",
        }
        for n, p in ((81, 1.123456789012345), (82, None))
    ],
    "arena_bench": [
        {"question_id": 81, "model": "a", "judgment": "t", "score": 4},
        {"question_id": 82, "model": "a", "judgment": "t", "score": None},
    ],
    "vicuna_review": [
        {
            "question_id": 81,
            "answer1_id": "1",
            "answer2_id": "2",
            "text": "t",
            "score": [8.5, 7],
            "model_1": "a",
            "model_2": "b",
        },
        {
            "question_id": 82,
            "answer1_id": "1",
            "answer2_id": "2",
            "text": "t",
            "score": [-1, -1],
            "model_1": "b",
            "model_2": "a",
        },
    ],
}


@pytest.mark.parametrize("format", ROUND_TRIPS)
def test_exported_judgments_import_as_the_same(world: FormatsWorld, format: str) -> None:
    world.questions(2)
    world.entrants("a", "b")
    first = world.judgments(jsonl(ROUND_TRIPS[format]), name="one")
    assert first["format"] == format
    file = world.download("evaluations/e/judges/one/judgments", format=format)
    again = world.judgments(file, name="two")
    assert (again["format"], again["unmatched_rows"]) == (format, 0)
    if format == "arena_bench":
        assert again["judge"]["model"] == first["judge"]["model"] == "unknown"
    assert world.verdicts("two") == world.verdicts("one")
    assert world.download("evaluations/e/judges/two/judgments", format=format) != b""


def test_a_style_is_written_in_its_own_format_only(world: FormatsWorld) -> None:
    world.questions(1)
    world.entrants("m")
    world.judgments(jsonl([single(81, "m", 5)]), name="j")
    refused = world.client.get(f"{ROOT}/evaluations/e/judges/j/judgments", params={"format": "alpaca_eval"})
    assert refused.json()["code"] == "format_too_narrow"
    assert json.loads(world.download("evaluations/e/judges/j/judgments"))["score"] == 5
    assert world.client.get(f"{ROOT}/evaluations/e/judges/nobody/judgments").json()["code"] == "unknown_judge"


def test_verdicts_of_a_turn_that_nobody_knows_are_refused_or_count_against_the_judge(world: FormatsWorld) -> None:
    world.questions(20, turns=2)
    world.entrants("m")
    rows = [
        single(81 + n, "m", 9 - 6 * turn, turn=turn + 1, tstamp=n + turn / 10) for n in range(20) for turn in (0, 1)
    ]
    nameless = [{key: value for key, value in row.items() if key != "turn"} for row in rows]
    for damaged in (nameless, [{**row, "turn": 1} if row["question_id"] < 90 else row for row in rows]):
        refused = world.refused("evaluations/e/judgments", jsonl(damaged))
        assert "may be of another turn than the one that they count for" in str(refused)
        imported = world.judgments(jsonl(damaged), bad_rows="skip")
        assert (imported["judge"]["valid"], imported["judge"]["imported"]["skipped"]) == (
            False,
            20 if damaged is nameless else 9,
        )
    assert world.judgments(jsonl(rows), name="whole")["judge"]["valid"]
