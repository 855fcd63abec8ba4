"""A system text reaches the prompt from wherever a file has it, or the row is refused."""

from __future__ import annotations

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

SYSTEM = {"role": "system", "content": "Answer like a pirate."}
ASKED = {"role": "user", "content": "Name a city."}
GOOD, BAD = {"role": "assistant", "content": "Arr, Lima"}, {"role": "assistant", "content": "A fish"}
SIDES = {"chosen": [ASKED, GOOD], "rejected": [ASKED, BAD]}
TEXT = SYSTEM["content"]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": [SYSTEM, ASKED], **SIDES},
        {"system": TEXT, **SIDES},
        {"system": TEXT, "prompt": ASKED["content"], **SIDES},
        {"system": TEXT, "prompt": "\n\nHuman: Name a city.\n\nAssistant:", **SIDES},
        {"system": TEXT, "chosen": [SYSTEM, ASKED, GOOD], "rejected": [SYSTEM, ASKED, BAD]},
        {"prompt": [SYSTEM, ASKED], "chosen": [SYSTEM, ASKED, GOOD], "rejected": [SYSTEM, ASKED, BAD]},
        {"system": TEXT, "prompt": ASKED["content"], "chosen": "Arr, Lima", "rejected": "A fish"},
        {"system": TEXT, "messages": [ASKED, GOOD]},
        {"system": TEXT, "messages": [SYSTEM, ASKED, GOOD]},
        {"prompt": ASKED["content"], "response": "Arr, Lima", "messages": [SYSTEM, ASKED, GOOD]},
        {"system": TEXT, "conversations": [{"from": "human", "value": "Name a city."}, {"from": "gpt", "value": "Ar"}]},
        {"conversations": [{"from": "system", "value": TEXT}, {"from": "human", "value": "Name a city."}]},
        {
            "system": TEXT,
            "chosen": "\n\nHuman: Name a city.\n\nAssistant: Arr, Lima",
            "rejected": "\n\nHuman: Name a city.\n\nAssistant: A fish",
        },
    ],
)
def test_a_system_text_opens_the_prompt(
    row: dict[str, Any], sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    only_asked = "conversations" in row and len(row["conversations"]) == 2 and "system" not in row
    report = import_path(write_jsonl([row]), kind="prompts" if only_asked else None)
    with sessions() as session:
        stored = session.scalars(select(SampleRow)).one()
    assert stored.sample["prompt"] == [SYSTEM, ASKED]
    assert {column.name for column in report.unused} <= {"prompt", "response"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"system": TEXT, "messages": [{"role": "system", "content": "Be brief."}, ASKED, GOOD]}, "another one"),
        ({"system": "Be brief.", "prompt": [SYSTEM, ASKED], **SIDES}, "another one"),
        ({"prompt": "Name a river.", **SIDES}, "not part of the dialogues"),
        ({"prompt": [{"role": "user", "content": "Be brief."}, ASKED], **SIDES}, "not part of the dialogues"),
    ],
)
def test_what_contradicts_the_dialogue_is_refused(
    row: dict[str, Any], reason: str, write_jsonl: Write, import_path: Import
) -> None:
    with pytest.raises(RowsRefused, match=reason):
        import_path(write_jsonl([row]))
