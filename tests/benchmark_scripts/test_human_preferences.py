"""The files of `recipes/human-preferences.yaml`: who preferred what, and no prompt in two of them."""

from __future__ import annotations

import json
import runpy
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
    assert [(one["role"], one["content"]) for one in turns] == [
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
    found = [(row["prompt"], row["chosen"]) for row in script["pandalm"](tmp_path)]
    assert found == [("q0", "one"), ("q1", "two")]


def test_no_prompt_is_in_two_files_and_every_source_is_held_out(script: dict[str, Any]) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"the shared test data is not at {SHARED}")
    found = script["files"](SHARED)
    prompts = {name: {json.dumps(row["prompt"]) for row in found[name]} for name in ("held-out", "pairs", "judgments")}
    assert not prompts["held-out"] & prompts["pairs"]
    assert not prompts["held-out"] & prompts["judgments"]
    assert not prompts["pairs"] & prompts["judgments"]
    assert {row["source"] for row in found["held-out"]} == set(script["SOURCES"])
    assert all(row["chosen"] and row["rejected"] for rows in found.values() for row in rows)
