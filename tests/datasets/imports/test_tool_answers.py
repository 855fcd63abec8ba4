"""Answers that call tools: of any program that writes them, kept whole, read wherever answers are, and given back."""

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
from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.rows.exporting import ordered_fields
from steerboard.datasets.schemas import ExportFormat, ImportReport
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard_contracts.samples import SampleKind

Write = Callable[..., Path]
Import = Callable[..., ImportReport]

ASKED = [{**USER, "tools": json.dumps([TOOL])}]


def kept(
    text: str = "", *, number: str | None = "c1", name: str = "add", arguments: str = '{"second": 5, "a": 2}'
) -> Any:
    call = {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{key: value for key, value in call.items() if value is not None}],
    }


NAMELESS = kept(number=None)


def stored(sessions: sessionmaker[Session], kind: SampleKind = "instructions") -> list[dict[str, Any]]:
    with sessions() as session:
        rows = session.scalars(select(SampleRow).order_by(SampleRow.dataset_id, SampleRow.row))
        return [ordered_fields(kind, row.sample) for row in rows]


@pytest.mark.parametrize(
    ("row", "prompt", "response"),
    [
        ({"messages": [USER, calling()], "tools": [TOOL]}, ASKED, kept()),
        ({"messages": [USER, calling(json.dumps(ARGUMENTS), "I add.")], "tools": [TOOL]}, ASKED, kept("I add.")),
        (
            {"messages": [USER, calling(), RESULT, calling({"a": 7})], "tools": [TOOL]},
            [*ASKED, kept(), RESULT],
            kept(arguments='{"a": 7}'),
        ),
        ({"prompt": [USER], "completion": [calling()], "tools": [TOOL]}, ASKED, kept()),
        ({"prompt": "2 + 5?", "response": calling(), "tools": json.dumps([TOOL])}, ASKED, kept()),
        (
            {
                "conversations": [
                    {"from": "human", "value": "2 + 5?"},
                    {"from": "function_call", "value": json.dumps({"name": "add", "arguments": ARGUMENTS})},
                ],
                "tools": json.dumps([FUNCTION]),
            },
            ASKED,
            NAMELESS,
        ),
        (
            {
                "id": 0,
                "query": "2 + 5?",
                "answers": json.dumps([{"name": "add", "arguments": ARGUMENTS}]),
                "tools": json.dumps([FUNCTION]),
            },
            ASKED,
            NAMELESS,
        ),
        (
            {"messages": [USER, {"role": "assistant", "function_call": {"name": "add", "arguments": ARGUMENTS}}]},
            [USER],
            NAMELESS,
        ),
    ],
    ids=["openai", "text too", "middle and end", "trl", "text prompt", "sharegpt", "xlam", "function_call"],
)
def test_an_answer_that_calls_tools_is_kept_in_the_order_of_its_fields(
    row: dict[str, Any],
    prompt: Any,
    response: Any,
    sessions: sessionmaker[Session],
    write_jsonl: Write,
    import_path: Import,
) -> None:
    import_path(write_jsonl([row]))
    (sample,) = stored(sessions)
    assert sample == {"prompt": prompt, "response": response}
    assert list(sample["response"]) == list(response)


@pytest.mark.parametrize(
    "row",
    [
        {
            "input": {"messages": [USER], "tools": [TOOL], "parallel_tool_calls": True},
            "preferred_output": [calling()],
            "non_preferred_output": [{"role": "assistant", "content": "8"}],
        },
        {"prompt": [USER], "chosen": [calling()], "rejected": [{"role": "assistant", "content": "8"}], "tools": [TOOL]},
        {"chosen": [USER, calling()], "rejected": [USER, {"role": "assistant", "content": "8"}], "tools": [TOOL]},
    ],
    ids=["openai", "sides", "dialogues"],
)
def test_a_pair_of_a_call_and_a_text_is_kept(
    row: dict[str, Any], sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    import_path(write_jsonl([row]))
    assert stored(sessions, "preferences") == [{"prompt": ASKED, "chosen": kept(), "rejected": "8"}]


def test_sides_are_the_same_where_text_and_calls_are(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    def pair(chosen: Any, rejected: Any) -> dict[str, Any]:
        return {"prompt": [USER], "chosen": [chosen], "rejected": [rejected]}

    spelled = {"role": "assistant", "content": 'add {"second": 5, "a": 2}'}
    rows = [
        pair(calling(), calling(json.dumps(ARGUMENTS, indent=2))),
        pair(calling(), calling({"a": 2})),
        pair(calling(), calling(content="I add.")),
        pair(calling(), spelled),
    ]
    report = import_path(write_jsonl(rows))
    assert report.cleaned == {"identical_sides": 1}
    assert [sample["rejected"] for sample in stored(sessions, "preferences")] == [
        kept(arguments='{"a": 2}'),
        kept("I add."),
        spelled["content"],
    ]


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (calling("2 and 5"), "response.tool_calls.0.function.arguments: is not JSON"),
        (calling("[2, 5]"), "arguments: is not an object of arguments by name"),
        (calling(name=None), "turn 2 has a call of a tool without a name"),
        (calling(name=""), "response.tool_calls.0.function.name: has fewer than 1 characters"),
        (calling({"a": "\x00"}), "arguments: contains a NUL character"),
        (calling('{"a": NaN}'), "arguments: is not JSON"),
        (calling('{"a": ' + "[" * 100_000), "arguments: is not JSON"),
        ({"role": "assistant", "content": None, "tool_calls": [3]}, "turn 2 has a call of a tool without a name"),
        ({"role": "assistant", "content": "", "tool_calls": []}, "response: is empty"),
        ({"role": "user", "content": "?", "tool_calls": [{"name": "add"}]}, "do not end with an assistant turn"),
        (RESULT, "do not end with an assistant turn"),
    ],
)
def test_an_answer_with_a_broken_call_is_refused(
    turn: Any, reason: str, write_jsonl: Write, import_path: Import
) -> None:
    with pytest.raises(RowsRefused, match=reason.replace(".", r"\.")):
        import_path(write_jsonl([{"messages": [USER, turn]}]))


def test_a_row_of_calls_without_one_is_refused(write_jsonl: Write, import_path: Import) -> None:
    row = {"query": "2 + 5?", "tools": json.dumps([FUNCTION])}
    good = {**row, "answers": json.dumps([{"name": "add", "arguments": {}}])}
    report = import_path(
        write_jsonl([good, {**row, "answers": "[]"}, {**row, "answers": "add(2, 5)"}]), bad_rows="skip"
    )
    assert report.rows == 1
    assert [bad.reason for bad in report.bad] == ["answers: is not a list of calls, each with a `name`"] * 2


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "parquet"])
@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (
            "instructions",
            [
                {"messages": [USER, calling()], "tools": [TOOL]},
                {"messages": [USER, {"role": "assistant", "content": "7"}]},
            ],
        ),
        ("preferences", [{"prompt": "2 + 5?", "chosen": calling(content="I add."), "rejected": "8", "margin": 2}]),
        ("unpaired", [{"prompt": [USER], "response": calling(), "desirable": False}]),
        (
            "labelled",
            [
                {"prompt": [USER], "response": calling(), "reward": 0.5, "attributes": {"brevity": 2}},
                {"prompt": [USER], "response": "7", "reward": 1.5},
            ],
        ),
    ],
)
def test_an_export_reads_back_as_the_same_rows(
    form: ExportFormat,
    kind: SampleKind,
    rows: list[Any],
    sessions: sessionmaker[Session],
    project: Project,
    write_jsonl: Write,
    import_path: Import,
    tmp_path: Path,
) -> None:
    import_path(write_jsonl(rows), "first", kind=kind)
    out = io.BytesIO()
    with sessions() as session:
        service.write_export(session, service.get_dataset(session, project, "first"), form, out)
    path = tmp_path / f"again.{form}"
    path.write_bytes(out.getvalue())
    report = import_path(path, "again")
    assert report.dataset.kind == kind
    before = stored(sessions, kind)
    assert before[: len(rows)] == before[len(rows) :]
    with sessions() as session:
        hashes = session.scalars(select(Dataset.content_hash)).all()
    assert len(hashes) == 2
    assert len(set(hashes)) == 1
