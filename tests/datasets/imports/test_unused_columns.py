"""Columns that feed no field are named before anything is imported, with what they could be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.imports.importer import unused_of
from steerboard.datasets.parsing.mapping import plan_mapping
from steerboard.datasets.parsing.unused_columns import winner_layout
from steerboard_files.errors import UnknownColumn

PROJECT = "/api/v1/projects/default"
GRADED = {"question": "Hi", "answer": "Hello", "gpt4_score": 7, "url": "http://x"}
AB = {"prompt": "Hi", "response_a": "Hello", "response_b": "Go away", "winner": "a"}


def unused(row: dict[str, Any], **given: str) -> list[tuple[str, str | None, str | None]]:
    columns = unused_of(plan_mapping(None, list(row), [row], given), list(row), [row])
    return [(column.name, column.kind, column.field) for column in columns]


def test_a_grade_could_be_a_reward_and_other_columns_are_named() -> None:
    assert unused(GRADED) == [("gpt4_score", "labelled", "reward"), ("url", None, None)]
    assert unused({**GRADED, "gpt4_score": "7.5"})[0] == ("gpt4_score", "labelled", "reward")
    assert unused({**GRADED, "gpt4_score": "very good"})[0] == ("gpt4_score", None, None)


def test_what_is_mapped_or_stands_in_the_dialogues_is_used() -> None:
    assert unused(GRADED, reward="gpt4_score") == [("url", None, None)]
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    row = {"prompt": "Hi", "chosen": chat, "rejected": chat, "score_chosen": 2, "score_rejected": 1}
    assert unused(row) == []


def test_a_strength_of_a_preference_could_be_its_margin() -> None:
    row = {"prompt": "Hi", "chosen": "a", "rejected": "b", "preference_strength": 2}
    assert unused(row) == [("preference_strength", "preferences", "margin")]


@pytest.mark.parametrize(
    ("columns", "sides"),
    [
        (["prompt", "response_a", "response_b", "winner"], ("response_a", "response_b")),
        (["question", "Answer 1", "Answer 2", "preferred"], ("Answer 1", "Answer 2")),
        (["model_a", "model_b", "conversation_a", "conversation_b", "winner"], ("conversation_a", "conversation_b")),
        (["prompt", "a", "b", "better"], ("a", "b")),
        (["input", "output_0", "output_1", "choice"], ("output_0", "output_1")),
    ],
)
def test_two_answers_and_a_winner_are_not_taken_for_prompts_alone(columns: list[str], sides: tuple[str, str]) -> None:
    layout = winner_layout(columns)
    assert layout is not None
    assert (layout.a, layout.b) == sides
    with pytest.raises(UnknownColumn) as refused:
        plan_mapping(None, columns, [dict.fromkeys(columns, "x")], {})
    assert "`chosen`" in (refused.value.hint or "")
    assert layout.winner in (refused.value.hint or "")


@pytest.mark.parametrize(
    "columns", [["prompt", "text_a"], ["prompt", "response_a", "response_b"], ["prompt", "winner"], ["prompt"]]
)
def test_other_files_are_no_such_layout(columns: list[str]) -> None:
    assert winner_layout(columns) is None


def test_two_answers_and_a_winner_are_prompts_for_whom_says_so() -> None:
    assert plan_mapping("prompts", list(AB), [AB], {}).kind == "prompts"


def posted(client: TestClient, row: dict[str, Any], **fields: str) -> Any:
    content = "".join(json.dumps({**row, "question": f"Hi {n}"}) + "\n" for n in range(20)).encode()
    return client.post(f"{PROJECT}/datasets/import", data={"name": "x", **fields}, files={"file": ("x.jsonl", content)})


def test_an_import_that_refuses_unused_columns_stores_nothing(client: TestClient) -> None:
    refused = posted(client, GRADED, unused="refuse")
    assert (refused.status_code, refused.json()["code"]) == (422, "unused_columns")
    told = {place["location"]: place["message"] for place in refused.json()["errors"]}
    assert told["gpt4_score"].endswith("--kind labelled --map reward=gpt4_score")
    assert told["url"] == "kept with each row"
    assert client.get(f"{PROJECT}/datasets").json()["items"] == []
    kept = posted(client, GRADED).json()
    assert [column["name"] for column in kept["unused"]] == ["gpt4_score", "url"]


def test_the_wizard_names_unused_columns_before_the_import(client: TestClient) -> None:
    content = (json.dumps(GRADED) + "\n").encode()
    made = client.post(f"{PROJECT}/imports", files={"file": ("graded.jsonl", content)}).json()
    assert [column["name"] for column in made["effective"]["unused"]] == ["gpt4_score", "url"]
    ab = "".join(json.dumps({**AB, "winner": winner}) + "\n" for winner in (0, 1)).encode()
    ab = client.post(f"{PROJECT}/imports", files={"file": ("ab.jsonl", ab)}).json()
    assert "response_a" in ab["problem"]["hint"]


def test_a_column_that_cannot_be_stored_and_is_not_used_refuses_no_file(tmp_path: Path, import_path: Any) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": f"Hi {n}", "response": "Hello", "picture": {"bytes": b"\x89PNG" if n > 150 else None}, "took": n}
        for n in range(200)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    report = import_path(tmp_path / "rows.parquet")
    assert (report.rows, report.bad_rows) == (200, 0)
    assert [(column.name, column.kept) for column in report.unused] == [("picture", False), ("took", True)]


def test_a_column_that_cannot_be_read_and_is_used_is_named(tmp_path: Path, import_path: Any) -> None:
    rows = [{"prompt": "Hi", "response": {"bytes": b"\x89PNG", "path": None}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    with pytest.raises(RowsRefused, match="response: is not a text"):
        import_path(tmp_path / "rows.parquet")
