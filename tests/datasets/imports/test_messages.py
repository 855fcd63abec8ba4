"""A message is kept with all that it means, or refused by the name of what would be lost."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.schemas import ImportReport
from steerboard.datasets.tables import SampleRow

Write = Callable[..., Path]
Import = Callable[..., ImportReport]

USER = {"role": "user", "content": "0+0?"}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "b": 1, "a": 2}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


def answer(content: Any = "0", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([USER, answer(reasoning_content="0 twice.")], "turn 2 has `reasoning_content`: thoughts are not kept"),
        ([USER, {"role": "tool", "content": "0"}, answer()], "prompt: has the result of a tool that does not follow"),
        ([USER, answer(None, tool_calls=["add"]), USER, answer()], "turn 2 has a call of a tool without a name"),
        ([USER, answer(None, tool_calls="add()"), USER, answer()], "turn 2 has `tool_calls` that is not JSON: add()"),
        ([{**USER, "tool_call_id": "c1"}, answer()], "turn 1 has `tool_call_id` as a user turn"),
        ([{**USER, "tools": [{}]}, answer()], "prompt.0.tools: has a tool 1 without a name"),
        ([USER, answer(), {**USER, "tools": [TOOL]}, answer()], "prompt: may have tools only in its first turn"),
        ([{**USER, "name": "Ann"}, answer()], "turn 1 has `name`: names of speakers are not kept"),
        ([USER, answer(weight=0), USER, answer(weight=1)], "turn 2 has `weight` = 0: a run decides which"),
        ([USER, answer(train=False)], "turn 2 has `train` = False: a run decides which"),
        ([{"role": "user", "content": [{"type": "image_url"}]}, answer()], "turn 1 has a part of type `image_url`"),
        ([USER, answer([{"type": "text", "text": None}])], "turn 2 has a part without a text"),
    ],
)
def test_what_a_sample_cannot_hold_is_refused_by_name_and_counted(
    messages: list[Any], reason: str, write_jsonl: Write, import_path: Import
) -> None:
    good = {"messages": [USER, answer()]}
    with pytest.raises(RowsRefused) as refused:
        import_path(write_jsonl([good, {"messages": messages}, {"messages": messages}]))
    assert refused.value.detail.startswith("2 of 3 rows cannot be used")
    assert all(error.message.startswith(reason) for error in refused.value.errors)
    assert list(refused.value.extra["bad_counts"].values()) == [2]
    report = import_path(write_jsonl([good, {"messages": messages}]), bad_rows="skip")
    assert (report.rows, report.bad_rows) == (1, 1)


def test_sides_that_differ_in_their_thoughts_are_refused_and_not_cleaned_away_as_equal(
    write_jsonl: Write, import_path: Import
) -> None:
    row = {"chosen": [USER, answer(reasoning_content="0.")], "rejected": [USER, answer(reasoning_content="guess")]}
    with pytest.raises(RowsRefused, match="`reasoning_content`"):
        import_path(write_jsonl([row]))
    assert (
        import_path(
            write_jsonl([row, {"chosen": [USER, answer("0")], "rejected": [USER, answer("1")]}]), bad_rows="skip"
        ).cleaned
        == {}
    )


def test_empty_and_null_fields_say_nothing_and_parts_of_text_are_one_text(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    padded = {"tool_calls": None, "name": None, "images": [], "weight": 1, "reasoning_content": ""}
    parts = [{"type": "text", "text": "0+", "image_url": None}, {"type": "text", "text": "0?"}]
    messages = [
        {"role": "developer", "content": "Add."},
        {"role": "user", "content": parts, **padded},
        answer(**padded),
    ]
    import_path(write_jsonl([{"messages": messages}]))
    with sessions() as session:
        sample = session.scalars(select(SampleRow)).one().sample
    assert sample == {"prompt": [{"role": "system", "content": "Add."}, USER], "response": "0"}


CHAT, WORSE = [USER, answer()], [USER, answer("1")]
PRINTED = "[{'role': 'user', 'content': '0+0?'}\n {'role': 'assistant', 'content': '0'}]"


@pytest.mark.parametrize("written", [json.dumps, str], ids=["json", "python"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"messages": CHAT}, "instructions"),
        ({"chosen": CHAT, "rejected": WORSE}, "preferences"),
        ({"prompt": [USER], "chosen": answer(), "rejected": [answer("1")]}, "preferences"),
        ({"conversation_a": CHAT, "conversation_b": WORSE, "winner": "a"}, "preferences"),
    ],
)
def test_messages_that_were_written_as_text_are_messages(
    row: dict[str, Any],
    kind: str,
    ending: str,
    written: Callable[[Any], str],
    sessions: sessionmaker[Session],
    tmp_path: Path,
    import_path: Import,
) -> None:
    texts = {name: value if isinstance(value, str) else written(value) for name, value in row.items()}
    path = tmp_path / f"rows.{ending}"
    with path.open("w", newline="") as file:
        if ending == "csv":
            csv.writer(file).writerows([texts.keys(), texts.values()])
        else:
            file.write(json.dumps(texts))
    assert import_path(path).dataset.kind == kind
    with sessions() as session:
        sample = session.scalars(select(SampleRow)).one().sample
    answers = {"response": "0"} if kind == "instructions" else {"chosen": "0", "rejected": "1"}
    assert sample == {"prompt": [USER], **answers}


def test_messages_as_numpy_prints_them_are_refused_with_a_way_out(write_jsonl: Write, import_path: Import) -> None:
    with pytest.raises(RowsRefused, match=r"messages: has messages as Python or NumPy prints them.*to_json"):
        import_path(write_jsonl([{"messages": PRINTED}]))


def test_texts_of_other_lists_stay_texts(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    row = {"prompt": "0+0?", "response": '[{"value": 0}]', "note": json.dumps(CHAT)}
    import_path(write_jsonl([row]))
    with sessions() as session:
        stored = session.scalars(select(SampleRow)).one()
    assert (stored.sample["response"], stored.extra) == (row["response"], {"note": row["note"]})


def test_what_else_messages_have_is_named_as_not_used(write_jsonl: Write, import_path: Import) -> None:
    report = import_path(write_jsonl([{"messages": [{**USER, "language": "en"}, answer(language=None, toxic=False)]}]))
    assert [(column.name, column.kept) for column in report.unused] == [
        ("messages.language", False),
        ("messages.toxic", False),
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [USER, answer(7)]},
        {"messages": [USER, {"role": "narrator", "content": "x"}, answer()]},
        {"messages": ["Hi", answer()]},
        {"prompt": "Hi", "response": ["a"]},
        {"prompt": 3, "response": "a"},
        {"prompt": {"text": "Hi"}, "response": "a"},
        {"prompt": "Hi", "response": "a", "reward": [1]},
        {"prompt": "Hi", "response": "a", "reward": 1, "attributes": {"wit": "much"}},
        {"prompt": "Hi", "response": "a", "group": "x", "candidate": 1.5},
        {"prompt": "Hi", "chosen": "a", "rejected": {"text": "b"}},
    ],
)
def test_reasons_are_in_our_words(row: dict[str, Any], write_jsonl: Write, import_path: Import) -> None:
    kind = {"reward": "labelled", "chosen": "preferences"}
    asked = next((value for name, value in kind.items() if name in row), "instructions")
    given = {name: name for name in ("group", "candidate") if name in row}
    with pytest.raises(RowsRefused) as refused:
        import_path(write_jsonl([row]), kind=asked, mapping=given)
    assert not re.search(r"\b[Ii]nput\b|valid|Field required", refused.value.detail), refused.value.detail
