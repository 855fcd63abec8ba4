"""Hostile files of prompts, answers, judgments and rewards: read by another process, within limits, refused by name."""

from __future__ import annotations

import json

import psutil
import pytest
from formats_world import FormatsWorld, jsonl

from steerboard_figures.formats import rows as rows_reader
from steerboard_files import jsonl as jsonl_reader

ANSWER = {"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": ["it says"]}]}
GRADE = {"question_id": 81, "model": "m", "judge": ["g", "single-v1"], "score": 7, "turn": 1, "judgment": "[[7]]"}
# A line that becomes sixty times its size.
SWOLLEN = '{"question_id": 81, "model_id": "m", "choices": [' + ",".join(["[]"] * 4_000_000) + "]}"

Sent = tuple[str, dict[str, object]]
EVERY = [
    pytest.param(("prompt-sets", {"question_id": 1, "turns": ["x"]}), id="prompts"),
    pytest.param(("evaluations/e/answers", ANSWER), id="answers"),
    pytest.param(("evaluations/e/judgments", GRADE), id="judgments"),
]


@pytest.fixture
def asked(world: FormatsWorld) -> FormatsWorld:
    """A world with one question and an entrant."""
    world.questions(1)
    world.entrants("m")
    return world


@pytest.mark.parametrize("what", EVERY)
def test_a_file_is_parsed_in_another_process(asked: FormatsWorld, monkeypatch: pytest.MonkeyPatch, what: Sent) -> None:
    def here(*_: object) -> object:
        raise AssertionError("the server itself reads the file")

    monkeypatch.setattr(rows_reader, "read_jsonl", here)
    monkeypatch.setattr(jsonl_reader, "parse_object", here)
    path, row = what
    if path.endswith("answers"):
        row = {**row, "model_id": "another"}
    sent = asked.send(path, jsonl([row]))
    assert sent.status_code == 201, sent.text


def test_long_and_deep_lines_are_named(asked: FormatsWorld) -> None:
    deep = json.dumps(GRADE)[:-1] + ', "more": ' + "[" * 100_000 + "]" * 100_000 + "}"
    long = json.dumps({**GRADE, "more": "x" * (17 << 20)})
    problem = asked.refused("evaluations/e/judgments", jsonl([GRADE, deep, long]))
    assert [place["location"] for place in problem["errors"]] == ["line 2", "line 3"], problem
    assert "recursion depth" in problem["errors"][0]["message"]
    assert "bytes long" in problem["errors"][1]["message"]


@pytest.mark.parametrize("as_array", [False, True], ids=["lines", "array"])
def test_a_line_that_takes_all_memory_is_named_and_the_next_file_is_read(
    asked: FormatsWorld, monkeypatch: pytest.MonkeyPatch, as_array: bool
) -> None:
    monkeypatch.setenv("STEERBOARD_IMPORT_MEMORY_MB", "150")
    used = psutil.Process().memory_info().rss
    lines = [json.dumps(ANSWER), SWOLLEN]
    content = f"[{lines[0]},\n{lines[1]}]".encode() if as_array else jsonl(lines)
    problem = asked.refused("evaluations/e/answers", content)
    assert (problem["code"], problem["status"]) == ("import_out_of_memory", 413)
    assert problem["errors"][0]["location"] == "line 2"
    assert psutil.Process().memory_info().rss - used < 100 << 20
    asked.entrants("b")


def test_a_file_that_takes_all_memory_elsewhere_says_how_far_it_was_read(
    asked: FormatsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEERBOARD_IMPORT_MEMORY_MB", "1")
    padded = b"[" + b" " * (8 << 20) + json.dumps(ANSWER).encode() + b"]"
    problem = asked.refused("evaluations/e/answers", padded)
    assert problem["code"] == "import_out_of_memory"
    (place,) = problem["errors"]
    assert place["location"] == "rows.jsonl"
    assert f"of {len(padded):,} bytes" in place["message"]


def test_a_file_that_takes_too_long_is_stopped(asked: FormatsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEERBOARD_IMPORT_SECONDS", "0.3")
    many = jsonl({**ANSWER, "model_id": f"m{i % 5}", "question_id": i} for i in range(200_000))
    problem = asked.refused("evaluations/e/answers", many)
    assert (problem["code"], problem["status"]) == ("import_timed_out", 413)
    assert "bytes had been read" in problem["errors"][0]["message"]
    monkeypatch.delenv("STEERBOARD_IMPORT_SECONDS")
    asked.entrants("b")
