"""Verdicts and reviewers under the words that published files have for them, and under a user's own."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from figures.figures_runner import figures, invalid, pair, run, write
from steerboard.cli.output.figures_table import print_figures
from steerboard_contracts.errors import BadInput


@pytest.fixture
def in_words(published: Path, tmp_path: Path) -> tuple[Path, Path]:
    """PandaLM's test set and its verdicts, ties written as the published GPT-3.5 file has them: 25 are garbage."""
    rows = json.loads((published / "pandalm" / "pandalm-7b-testset-v1.json").read_text())
    ties = [row for row in rows if row["pandalm_result"] == 0]
    for place, row in enumerate(ties):
        row["pandalm_result"] = "garbage" if place < 25 else "Tie"
    path = tmp_path / "verdicts.json"
    path.write_text(json.dumps(rows))
    return published / "pandalm" / "testset-v1.json", path


def test_a_tie_in_words_is_a_verdict_and_garbage_is_none(published: Path, in_words: tuple[Path, Path]) -> None:
    folder = published / "pandalm"
    (numbers,) = figures(folder / "testset-v1.json", folder / "pandalm-7b-testset-v1.json")["models"]
    computed = figures(*in_words)
    (words,) = computed["models"]
    assert (numbers["unparsed"], words["unparsed"]) == (0, 25)
    assert words == {**numbers, "unparsed": 25}
    assert computed["verdicts"]["Tie"] == {"read_as": "tie", "n": 82}
    assert computed["verdicts"]["garbage"] == {"read_as": None, "n": 25}
    assert any("'garbage' (25): --verdicts" in warning for warning in computed["warnings"])
    read = figures(*in_words, "--verdicts", "garbage=tie")
    assert (read["models"], read["warnings"]) == ([numbers], [])


def test_people_see_what_each_verdict_is_read_as(in_words: tuple[Path, Path]) -> None:
    text = io.StringIO()
    print_figures(figures(*in_words, "--verdicts", "2=none", "--threshold", 0.6), Console(file=text, width=120))
    assert "verdicts read: 2 (459) as none, 1 (433) as a, Tie (82) as tie, garbage (25) as none" in text.getvalue()


@pytest.mark.parametrize("word", ["tie (inconsistent)", "Tie", "both_bad", "draw", "[[C]]"])
def test_ties_of_battles_have_many_words(tmp_path: Path, word: str) -> None:
    rows = [{"model_a": "a", "model_b": "b", "winner": winner} for winner in ("model_a", "model_b", word, word)]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert {model["ties"] for model in computed["models"]} == {2}
    assert computed["verdicts"][word] == {"read_as": "tie", "n": 2}


def test_winners_of_pairs_are_read_in_any_case(tmp_path: Path) -> None:
    rows = [pair(n, "Model_1", "MODEL_2" if n % 2 else "model_1") for n in range(40)]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert {model["model"]: (model["wins"], model["ties"]) for model in computed["models"]} == {
        "a": (20, 20),
        "b": (0, 20),
    }


@pytest.mark.parametrize(
    ("rows", "format"),
    [
        (
            [{"model_a": "a", "model_b": "b", "winner": winner} for winner in ("links", "rechts", "egal") * 20],
            "battles",
        ),
        ([pair(n, *said) for n, said in enumerate([("links", "links"), ("rechts", "egal")] * 20)], "fastchat_pair"),
        (
            [
                {"question_id": n, "model": "m", "baseline": "base", "games": [{"score": winner}, {"score": "links"}]}
                for n, winner in enumerate(("links", "rechts", "egal") * 20)
            ],
            "arena_hard",
        ),
    ],
)
def test_a_users_words_are_read_as_the_verdicts_that_they_mean(
    tmp_path: Path, rows: list[dict[str, Any]], format: str
) -> None:
    said = ["--verdicts", "links=a", "--verdicts", "Rechts=b", "--verdicts", "egal=tie"]
    spelled = {
        "battles": ("model_a", "model_b", "tie"),
        "fastchat_pair": ("model_1", "model_2", "tie"),
        "arena_hard": ("A>B", "B>A", "A=B"),
    }[format]
    text = "\n".join(map(json.dumps, rows))
    for word, own in zip(("links", "rechts", "egal"), spelled, strict=True):
        text = text.replace(f'"{word}"', f'"{own}"')
    mine = figures(write(tmp_path / "mine.jsonl", *rows), "--format", format, *said)
    own = figures(write(tmp_path / "own.jsonl", text), "--format", format)
    assert mine["models"] == own["models"]
    assert mine["verdicts"]["links"]["read_as"] == "a"
    assert "'links'" in str(run(tmp_path / "mine.jsonl", "--format", format)[1]["warnings"])


@pytest.mark.parametrize("said", [["x"], ["=tie"], ["x=win"], ["x=a", "--verdicts", "x=b"]])
def test_a_reading_that_is_none_is_refused(tmp_path: Path, said: list[str]) -> None:
    path = write(tmp_path / "a.jsonl", {"model_a": "a", "model_b": "b", "winner": "tie"})
    with pytest.raises(BadInput):
        run(path, "--verdicts", *said)


def _reviews(published: Path, name_of: Any) -> list[dict[str, Any]]:
    path = published / "vicuna_blog" / "review" / "others" / "review_llama_alpaca-13b.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [{**row, "reviewer_id": name_of(row["question_id"])} for row in rows]


def test_a_generic_reviewer_is_the_reviewer(published: Path, tmp_path: Path) -> None:
    rows = _reviews(published, lambda n: f"gpt-4-0328-{'generic' if n < 61 else 'coding' if n < 71 else 'math'}")
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert [(file["judge"], file["n"]) for file in computed["files"]] == [("gpt-4-0328", 80)]
    names = Counter(row["reviewer_id"] for row in rows)
    assert computed["reviewers"] == dict.fromkeys(sorted(names), "gpt-4-0328")


def test_a_users_reviewers_are_one(published: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *_reviews(published, lambda n: f"eval{n % 2}"))
    assert [file["n"] for file in figures(path)["files"]] == [40, 40]
    computed = figures(path, "--reviewers", "eval0=gpt-4", "--reviewers", "eval1=gpt-4")
    assert [(file["judge"], file["n"]) for file in computed["files"]] == [("gpt-4", 80)]
    assert computed["reviewers"] == {"eval0": "gpt-4", "eval1": "gpt-4"}


def test_a_users_judges_are_one(tmp_path: Path) -> None:
    rows = [pair(n, "model_1", "model_1", judge=[f"gpt-4-{n % 2}", "pair-v2"]) for n in range(40)]
    path = write(tmp_path / "a.jsonl", *rows)
    assert len(figures(path)["results"]) == 2
    merged = figures(path, "--reviewers", "gpt-4-0=gpt-4", "--reviewers", "gpt-4-1=gpt-4")
    assert merged["judges"] == {"gpt-4": 40}


def test_verdicts_of_a_format_without_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no verdicts in words"):
        invalid(write(tmp_path / "a.csv", "model,score", "a,1"), "--format", "fastchat_single", "--verdicts", "x=tie")
