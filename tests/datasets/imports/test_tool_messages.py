"""Conversations with tools: of any program that writes them, kept whole, and given back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker
from tool_rows import ARGUMENTS, FUNCTION, RESULT, TOOL, USER, calling

from steerboard.accounts.tables import Project
from steerboard.datasets import service
from steerboard.datasets.cleaning.rules import has_empty_round, has_wrong_roles
from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.rows.exporting import ordered_fields
from steerboard.datasets.schemas import ExportFormat, ImportReport
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard_contracts.prompt_split import prompt_hash
from steerboard_contracts.samples import InstructionSample

Write = Callable[..., Path]
Import = Callable[..., ImportReport]

ANSWER = {"role": "assistant", "content": "7"}


CALLED = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"second": 5, "a": 2}'}}],
}
KEPT = [{**USER, "tools": json.dumps([TOOL])}, CALLED, RESULT]
NAMELESS = {"type": "function", "function": CALLED["tool_calls"][0]["function"]}  # type: ignore[index]


def stored(sessions: sessionmaker[Session]) -> list[dict[str, Any]]:
    with sessions() as session:
        return [ordered_fields("instructions", row.sample) for row in session.scalars(select(SampleRow))]


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"messages": [USER, calling(), RESULT, ANSWER], "tools": [TOOL]}, KEPT),
        ({"messages": [USER, calling(json.dumps(ARGUMENTS), ""), RESULT, ANSWER], "tools": json.dumps([TOOL])}, KEPT),
        ({"messages": [USER, calling(), RESULT, ANSWER], "functions": [FUNCTION]}, KEPT),
        ({"messages": [{**USER, "tools": [TOOL]}, calling(), RESULT, ANSWER]}, KEPT),
        ({"prompt": [USER, calling(), RESULT], "response": "7", "tools": [TOOL]}, KEPT),
        (
            {
                "conversations": [
                    {"from": "human", "value": "2 + 5?"},
                    {"from": "function_call", "value": json.dumps({"name": "add", "arguments": ARGUMENTS})},
                    {"from": "observation", "value": "7"},
                    {"from": "gpt", "value": "7"},
                ],
                "tools": json.dumps([FUNCTION]),
            },
            [KEPT[0], {**CALLED, "tool_calls": [NAMELESS]}, {"role": "tool", "content": "7"}],
        ),
        (
            {
                "messages": [
                    USER,
                    {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": ARGUMENTS}},
                    {"role": "function", "name": "add", "content": ""},
                    ANSWER,
                ]
            },
            [USER, {**CALLED, "tool_calls": [NAMELESS]}, {"role": "tool", "content": "", "name": "add"}],
        ),
    ],
    ids=["openai", "texts", "functions", "first turn", "trl", "sharegpt", "function_call"],
)
def test_calls_results_and_tools_are_kept_in_the_order_of_their_fields(
    row: dict[str, Any], prompt: list[Any], sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    import_path(write_jsonl([row]))
    (sample,) = stored(sessions)
    assert sample == {"prompt": prompt, "response": "7"}
    assert [list(turn) for turn in sample["prompt"]] == [list(turn) for turn in prompt]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_export_reads_back_as_the_same_rows(
    form: ExportFormat,
    sessions: sessionmaker[Session],
    project: Project,
    write_jsonl: Write,
    import_path: Import,
    tmp_path: Path,
) -> None:
    with_tools = {"messages": [USER, calling(), RESULT, ANSWER], "tools": [TOOL]}
    import_path(write_jsonl([with_tools, {"messages": [USER, ANSWER]}]), "first")
    out = io.BytesIO()
    with sessions() as session:
        service.write_export(session, service.get_dataset(session, project, "first"), form, out)
    path = tmp_path / f"again.{form}"
    path.write_bytes(out.getvalue())
    import_path(path, "again")
    first, other, again, another = stored(sessions)
    assert (first, other) == (again, another)
    with sessions() as session:
        hashes = session.scalars(select(Dataset.content_hash)).all()
    assert len(set(hashes)) == 1
    if form == "jsonl":
        record = json.loads(out.getvalue().splitlines()[0])
        assert json.loads(record["tools"]) == [TOOL]
        assert "tools" not in record["prompt"][0]


def test_a_column_that_only_is_called_tools_is_kept_as_any_other(write_jsonl: Write, import_path: Import) -> None:
    report = import_path(write_jsonl([{"prompt": "Hi", "response": "Yes", "tools": 3}]))
    assert [(column.name, column.kept) for column in report.unused] == [("tools", True)]


def test_two_lists_of_tools_that_differ_are_refused(write_jsonl: Write, import_path: Import) -> None:
    row = {"messages": [{**USER, "tools": [TOOL]}, ANSWER], "tools": [{"name": "other"}]}
    with pytest.raises(RowsRefused, match="has tools in a column of their own, and others"):
        import_path(write_jsonl([row]))


def test_other_calls_are_another_prompt_and_other_tools_are_not() -> None:
    def prompt(*turns: Any) -> Any:
        return InstructionSample.model_validate({"prompt": list(turns), "response": "7"}).prompt

    base = prompt(USER, CALLED, RESULT)
    other = prompt(USER, {**CALLED, "tool_calls": [{"function": {"name": "add", "arguments": "{}"}}]}, RESULT)
    assert prompt_hash(base, "") != prompt_hash(other, "")
    assert prompt_hash(base, "") == prompt_hash(prompt(*KEPT), "")


def test_pairs_with_calls_take_turns_and_have_texts() -> None:
    sides = {"chosen": "7", "rejected": "8"}
    silent = {"role": "tool", "content": ""}
    assert not has_wrong_roles({"prompt": [USER, CALLED, RESULT, RESULT], **sides})
    assert not has_wrong_roles({"prompt": [USER, CALLED, RESULT, CALLED, RESULT, ANSWER, USER], **sides})
    assert has_wrong_roles({"prompt": [USER, ANSWER, ANSWER, USER], **sides})
    assert not has_empty_round({"prompt": [USER, CALLED, silent], **sides})
