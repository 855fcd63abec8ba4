"""Answers of other projects: matched to prompts, every row accounted for, exported and imported again unchanged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from formats_world import ROOT, FormatsWorld, jsonl

FASTCHAT = "fastchat/mt_bench"


def answer(question_id: object, model: str, *turns: str | None, tstamp: float = 1.0, **more: object) -> dict[str, Any]:
    return {
        "question_id": question_id,
        "model_id": model,
        "choices": [{"index": 0, "turns": list(turns)}],
        "tstamp": tstamp,
        **more,
    }


def test_fastchat_answers_of_two_turns(world: FormatsWorld, published: Path) -> None:
    world.evaluation(published / FASTCHAT / "question.jsonl")
    both = b"".join(
        (published / FASTCHAT / "model_answer" / f"{name}.jsonl").read_bytes() for name in ("gpt-4", "claude-v1")
    )
    imported = world.answers(gzip.compress(both))
    assert (imported["rows"], imported["matched"], imported["unmatched_rows"], imported["duplicates"]) == (
        160,
        160,
        0,
        0,
    )
    assert [
        (entrant["name"], entrant["family"], entrant["responses"], entrant["missing"])
        for entrant in imported["entrants"]
    ] == [
        ("gpt-4", "gpt", 80, 0),
        ("claude-v1", "claude", 80, 0),
    ]
    truth = json.loads((published / FASTCHAT / "model_answer" / "gpt-4.jsonl").open().readline())
    assert world.responses("gpt-4")[0, 0][0] == truth["choices"][0]["turns"]
    detail = world.client.get(f"{ROOT}/evaluations/e").json()
    assert [entrant["source"] for entrant in detail["entrants"]] == ["import", "import"]


def test_arena_hard_and_vicuna_answers(world: FormatsWorld, published: Path) -> None:
    world.evaluation(published / "arena_hard" / "arena-hard-v0.1" / "question.jsonl", name="arena")
    path = published / "arena_hard" / "arena-hard-v0.1" / "model_answer" / "gpt-3.5-turbo-0125.jsonl"
    assert world.answers(path, "arena")["matched"] == 500
    world.evaluation(published / "vicuna_blog" / "question.jsonl", name="vicuna")
    imported = world.answers(published / "vicuna_blog" / "answer" / "answer_bard.jsonl", "vicuna")
    assert (imported["entrants"][0]["name"], imported["matched"]) == ("bard-20230327", 80)


def test_rows_without_a_prompt_are_counted_and_named(world: FormatsWorld) -> None:
    world.questions(3)
    imported = world.answers(jsonl([answer(82, "m", "b"), answer(999, "m", "x"), answer("81", "m", "a")]))
    assert (imported["rows"], imported["matched"], imported["unmatched_rows"]) == (3, 2, 1)
    assert imported["unmatched"] == [
        {
            "line": 2,
            "model": "m",
            "question_id": "999",
            "reason": "is about question 999, which is not one of the prompts",
        }
    ]
    assert imported["entrants"][0]["missing"] == 1
    assert {place: turns for place, (turns, _) in world.responses("m").items()} == {(0, 0): ["a"], (1, 0): ["b"]}


def test_a_file_about_other_prompts_is_refused(world: FormatsWorld) -> None:
    world.questions(2)
    problem = world.refused("evaluations/e/answers", jsonl([answer(1, "m", "x"), answer(2, "m", "x")]))
    assert problem["code"] == "nothing_matches"
    assert "none of the 2 rows" in problem["detail"]
    assert world.client.get(f"{ROOT}/evaluations/e").json()["entrants"] == []


def test_the_newest_of_repeated_answers_counts(world: FormatsWorld) -> None:
    world.questions(2)
    rows = [
        answer(81, "m", "new", tstamp=20),
        answer(81, "m", "old", tstamp=10),
        answer(82, "m", "first", tstamp=5),
        answer(82, "m", "second", tstamp=5),
    ]
    imported = world.answers(jsonl(rows))
    assert (imported["matched"], imported["duplicates"]) == (2, 2)
    assert {place: turns for place, (turns, _) in world.responses("m").items()} == {(0, 0): ["new"], (1, 0): ["second"]}


def test_missing_turns_and_samples(world: FormatsWorld) -> None:
    """A turn that was never made ends the answer; turns beyond the prompt's are dropped."""
    world.questions(3, turns=2)
    two = {"question_id": 82, "model_id": "m", "choices": [{"turns": ["a", "b"]}, {"turns": ["c", "d"]}]}
    imported = world.answers(jsonl([answer(81, "m", "only", None), two, answer(83, "m", "x", "y", "z")]))
    assert (imported["short"], imported["entrants"][0]["samples"], imported["entrants"][0]["missing"]) == (1, 2, 2)
    assert {place: turns for place, (turns, _) in world.responses("m").items()} == {
        (0, 0): ["only"],
        (1, 0): ["a", "b"],
        (1, 1): ["c", "d"],
        (2, 0): ["x", "y"],
    }


def test_bad_rows_are_refused_or_left_out(world: FormatsWorld) -> None:
    world.questions(3)
    rows = [answer(81, "m", "a"), answer(82, "m"), "{", {"question_id": 83, "model_id": 7, "text": "x"}]
    problem = world.refused("evaluations/e/answers", jsonl(rows))
    assert problem["code"] in ("bad_row", "broken_json")
    assert [place["location"] for place in problem["errors"]] == ["line 2", "line 3", "line 4"]
    assert world.client.get(f"{ROOT}/evaluations/e").json()["entrants"] == []
    imported = world.answers(jsonl(rows), bad_rows="skip")
    assert (imported["matched"], imported["skipped_rows"], [skipped["line"] for skipped in imported["skipped"]]) == (
        1,
        3,
        [2, 3, 4],
    )


def test_alpaca_eval_is_matched_by_its_instructions(world: FormatsWorld) -> None:
    """A shuffled part of the prompts; a text that two prompts share means each in turn."""
    prompts = ["one", "two", "same", "four", "same"]
    world.evaluation(json.dumps([{"instruction": text} for text in prompts]).encode())
    rows = [
        {"instruction": text, "output": out, "generator": "org/Model 7B"}
        for text, out in (("four", "4"), ("same", "a"), (" one\n", "1"), ("same", "b"), ("other", "?"))
    ]
    imported = world.answers(json.dumps(rows).encode())
    assert imported["entrants"][0]["name"] == "org-Model-7B"
    assert (imported["matched"], imported["unmatched_rows"], imported["unmatched"][0]["line"]) == (4, 1, 1)
    assert {position: turns for (position, _), (turns, _) in world.responses("org-Model-7B").items()} == {
        3: ["4"],
        2: ["a"],
        0: ["1"],
        4: ["b"],
    }


def test_equal_instructions_in_their_own_places_stay_there(world: FormatsWorld) -> None:
    prompts = ["same", "two", "same"]
    world.evaluation(json.dumps([{"instruction": text} for text in prompts]).encode())
    rows = [{"instruction": text, "output": str(n), "generator": "m"} for n, text in enumerate(prompts)]
    world.answers(json.dumps(rows).encode())
    assert [world.responses("m")[n, 0][0] for n in range(3)] == [["0"], ["1"], ["2"]]


def test_rows_without_id_or_text_are_taken_by_their_places(world: FormatsWorld) -> None:
    world.questions(2)
    world.answers(jsonl([{"model_id": "m", "text": "first"}, {"model_id": "m", "text": "second"}]))
    assert [world.responses("m")[n, 0][0] for n in range(2)] == [["first"], ["second"]]


def test_places_say_nothing_after_a_row_that_cannot_be_read(world: FormatsWorld) -> None:
    world.questions(3)
    rows = [{"model_id": "m", "text": "0"}, {"model_id": "m"}, {"model_id": "m", "text": "2"}]
    imported = world.answers(jsonl([*rows, {"model_id": "m", "text": "3", "question_id": 83}]), bad_rows="skip")
    assert world.responses("m") == {(0, 0): (["0"], None), (2, 0): (["3"], None)}
    assert (imported["skipped_rows"], imported["unmatched_rows"], imported["unmatched"][0]["line"]) == (1, 1, 3)


def test_instructions_of_alpaca_have_their_input_below_them(world: FormatsWorld) -> None:
    rows = [{"instruction": "Sum up.", "input": "A text."}, {"instruction": "Sum up.", "input": "Another."}]
    world.evaluation(jsonl(rows), format="alpaca_eval")
    asked = world.client.get(f"{ROOT}/evaluations/e/prompts").json()["items"]
    assert [prompt["messages"][0]["content"] for prompt in asked] == ["Sum up.\n\nA text.", "Sum up.\n\nAnother."]
    world.answers(jsonl({**row, "output": row["input"], "generator": "m"} for row in reversed(rows)))
    assert world.responses("m") == {(0, 0): (["A text."], None), (1, 0): (["Another."], None)}


def test_names_of_entrants(world: FormatsWorld) -> None:
    world.questions(1)
    two = jsonl([answer(81, "a", "x"), answer(81, "b", "y")])
    assert world.refused("evaluations/e/answers", two, name="mine")["code"] == "several_models"
    answers = jsonl([answer(81, "a", "x")])
    assert world.answers(answers, name="mine", family="own")["entrants"][0]["family"] == "own"
    assert world.refused("evaluations/e/answers", answers, name="mine")["code"] == "name_taken"
    assert world.refused("evaluations/e/answers", answers, name="no name")["code"] == "invalid_name"


def test_what_postgres_cannot_hold_is_replaced(world: FormatsWorld) -> None:
    world.questions(1)
    raw = '{"question_id": 81, "model_id": "m", "choices": [{"turns": ["a\\u0000b \\ud800 c"]}]}'
    world.answers(jsonl([raw]))
    assert world.responses("m")[0, 0][0] == ["a\ufffdb ? c"]


def test_a_change_raises_the_version_and_tells_the_project(world: FormatsWorld) -> None:
    world.questions(1)
    before = world.client.get(f"{ROOT}/evaluations/e").json()["version"]
    world.entrants("m")
    assert world.client.get(f"{ROOT}/evaluations/e").json()["version"] > before
    log = world.client.get(f"{ROOT}/audit").json()
    assert any(entry["action"] == "evaluation.import_answers" for entry in log["items"])


@pytest.mark.parametrize("format", ["fastchat", "arena_hard", "alpaca_eval"])
def test_exported_answers_import_as_the_same(world: FormatsWorld, format: str) -> None:
    world.questions(3)
    world.questions(3, evaluation="again")
    rows = [
        answer(81 + n, name, f"{name} \u00e9\n{n}") for name in ("a", "b") for n in range(3) if (name, n) != ("b", 1)
    ]
    world.answers(jsonl(rows))
    file = world.download("evaluations/e/answers", format=format)
    imported = world.answers(file, "again")
    assert (imported["format"], imported["unmatched_rows"], imported["duplicates"]) == (format, 0, 0)
    assert world.download("evaluations/again/answers", format="fastchat").count(b"\n") == 5
    for name in ("a", "b"):
        downloaded = world.download("evaluations/e/answers", format=format, entrant=name)
        other = world.download("evaluations/again/answers", format=format, entrant=name)
        assert texts(downloaded) == texts(other)


def texts(file: bytes) -> list[Any]:
    """Rows without ids and times of ours."""
    rows = json.loads(file) if file.startswith(b"[") else [json.loads(line) for line in file.splitlines()]
    return [{k: v for k, v in row.items() if k not in ("answer_id", "ans_id", "tstamp")} for row in rows]


def test_several_turns_and_samples_survive_fastchat_and_do_not_fit_elsewhere(world: FormatsWorld) -> None:
    world.questions(1, turns=2)
    world.questions(1, turns=2, evaluation="again")
    world.answers(
        jsonl([{"question_id": 81, "model_id": "m", "choices": [{"turns": ["a", "b"]}, {"turns": ["c", "d"]}]}])
    )
    world.answers(world.download("evaluations/e/answers"), "again", name="n")
    assert world.responses("n") == world.responses("m")
    for format in ("alpaca_eval", "arena_hard"):
        refused = world.client.get(f"{ROOT}/evaluations/e/answers", params={"format": format})
        assert refused.json()["code"] == "format_too_narrow"
    assert (
        world.client.get(f"{ROOT}/evaluations/e/answers", params={"entrant": "nobody"}).json()["code"]
        == "unknown_entrant"
    )
