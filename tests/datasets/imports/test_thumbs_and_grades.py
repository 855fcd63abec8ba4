"""A column is taken for thumbs or grades by its values, and is never the reason that bad answers are learned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.schemas import ImportReport

Write = Callable[..., Path]
Import = Callable[..., ImportReport]


def answers(*labels: Any, column: str = "label") -> list[dict[str, Any]]:
    return [{"prompt": f"Say {n}", "completion": f"{n}.", column: label} for n, label in enumerate(labels)]


@pytest.mark.parametrize("labels", [(False, True), (0, 1), (-1, 1), ("False", "True"), ("bad", "good"), (None, True)])
def test_a_label_of_thumbs_makes_unpaired_answers(labels: Any, write_jsonl: Write, import_path: Import) -> None:
    report = import_path(write_jsonl(answers(*labels)), bad_rows="skip")
    assert report.dataset.kind == "unpaired"
    assert report.columns["desirable"] == "label"


@pytest.mark.parametrize("labels", [("maths", "history"), (0, 1, 2), ("0", "1", "2"), (["a"], ["b"])])
def test_a_label_of_topics_is_no_thumb_and_is_kept(labels: Any, write_jsonl: Write, import_path: Import) -> None:
    report = import_path(write_jsonl(answers(*labels)))
    assert (report.dataset.kind, report.rows) == ("instructions", len(labels))
    assert [(column.name, column.kept) for column in report.unused] == [("label", True)]


def test_a_label_that_is_no_thumb_is_refused_by_its_column_and_value(write_jsonl: Write, import_path: Import) -> None:
    with pytest.raises(RowsRefused) as refused:
        import_path(write_jsonl(answers(True, "maths", "maths")))
    message = "desirable (column `label`): 'maths' is neither good nor bad"
    assert [error.message.startswith(message) for error in refused.value.errors] == [True, True]
    with pytest.raises(RowsRefused, match="column `label`"):
        import_path(write_jsonl(answers("maths")), kind="unpaired")


def test_a_rating_that_is_no_number_is_no_reward(write_jsonl: Write, import_path: Import) -> None:
    report = import_path(write_jsonl(answers("PG", "R", column="rating")))
    assert report.dataset.kind == "instructions"
    assert [column.name for column in report.unused] == ["rating"]
    with pytest.raises(RowsRefused):
        import_path(write_jsonl(answers("PG", 3, column="rating")), "graded")


@pytest.mark.parametrize("tag", ["label", "kto_tag"])
def test_conversations_with_thumbs_are_unpaired_answers_and_never_instructions(
    tag: str, write_jsonl: Write, import_path: Import
) -> None:
    chat = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Go away"}]
    report = import_path(write_jsonl([{"conversations": chat, tag: False}]))
    assert report.dataset.kind == "unpaired"
    assert report.unused == []


def test_sides_of_one_message_each_answer_the_conversation_before_them(write_jsonl: Write, import_path: Import) -> None:
    asked = [{"from": "human", "value": "Hi"}]
    sides = {"chosen": {"from": "gpt", "value": "Hello"}, "rejected": {"from": "gpt", "value": "Go away"}}
    report = import_path(write_jsonl([{"conversations": asked, **sides}]))
    assert (report.dataset.kind, report.rows, report.unused) == ("preferences", 1, [])
    assert report.columns["messages"] == "conversations"
