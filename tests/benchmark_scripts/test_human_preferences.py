"""The files of `recipes/human-preferences.yaml`: who preferred what, and no prompt in two of them."""

from __future__ import annotations

import gzip
import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "human_preferences.py"))


def test_a_transcript_is_turns_and_a_last_answer(script: dict[str, Any]) -> None:
    turns, last = script["dialogue"]("\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: Why?\n\nAssistant: Because.\nSo.")
    assert [(turn["role"], turn["content"]) for turn in turns] == [
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "Why?"),
    ]
    assert last == "Because.\nSo."


def test_two_of_three_annotators_decide_and_ties_are_left_out(script: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "pandalm").mkdir()
    votes = [("1", "1", "2"), ("2", "0", "2"), ("0", "0", "1"), ("0", "1", "2")]
    rows = [
        {"instruction": f"q{n}", "input": "", "response1": "one", "response2": "two"}
        | {f"annotator{k + 1}": int(vote) for k, vote in enumerate(each)}
        for n, each in enumerate(votes)
    ]
    (tmp_path / "pandalm" / "testset-v1.json").write_text(json.dumps(rows))
    pairs = [(row["prompt"], row["chosen"]) for row in script["pandalm"](tmp_path)]
    assert pairs == [("q0", "one"), ("q1", "two")]


def test_a_reply_of_a_better_rank_is_chosen_at_every_turn(script: dict[str, Any]) -> None:
    def said(role: str, text: str, *replies: dict[str, Any], rank: int | None = None) -> dict[str, Any]:
        return {"role": role, "text": text, "rank": rank, "replies": list(replies)}

    later = said("prompter", "And then?", said("assistant", "no", rank=1), said("assistant", "yes", rank=0))
    tree = said("prompter", "Hi", said("assistant", "bad", rank=1), said("assistant", "good", later, rank=0))
    pairs = list(script["ranked_replies"](tree, []))
    assert [([turn["content"] for turn in row["prompt"]], row["chosen"], row["rejected"]) for row in pairs] == [
        (["Hi"], "good", "bad"),
        (["Hi", "good", "And then?"], "yes", "no"),
    ]


def test_grades_three_of_ten_points_apart_make_a_pair(script: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "graded").mkdir()
    rows = [{"prompt": "q", "response": text, "gpt4_score": grade} for text, grade in (("a", 9), ("b", 7), ("c", 6))]
    rows.append({"prompt": "q", "response": "d", "gpt4_score": None})
    with gzip.open(tmp_path / "graded" / "arena_bench_graded.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    assert [(row["chosen"], row["rejected"]) for row in script["grades"](tmp_path)] == [("a", "c")]


def test_long_pairs_are_left_out_and_no_source_outweighs_the_others(script: dict[str, Any]) -> None:
    usable, pair = script["usable"], script["pair"]
    assert usable(pair("q", "x" * 1599, "short", True))
    assert not usable(pair("q", "x" * 1600, "short", True))
    assert not usable(pair("q", "same", "same", True))
    if not SHARED.is_dir():
        pytest.skip(f"the shared test data is not at {SHARED}")
    for name, rows in script["files"](SHARED).items():
        limit = script["LIMITS"].get(name, script["LIMITS"]["pairs"])
        assert max(Counter(row["source"] for row in rows).values()) <= limit


def test_no_prompt_is_in_two_files_and_every_source_is_held_out(script: dict[str, Any]) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"the shared test data is not at {SHARED}")
    files = script["files"](SHARED)
    prompts = {name: {json.dumps(row["prompt"]) for row in files[name]} for name in ("held-out", "pairs", "judgments")}
    assert not prompts["held-out"] & prompts["pairs"]
    assert not prompts["held-out"] & prompts["judgments"]
    assert not prompts["pairs"] & prompts["judgments"]
    assert {row["source"] for row in files["held-out"]} == set(script["SOURCES"])
    assert all(row["chosen"] and row["rejected"] for rows in files.values() for row in rows)
