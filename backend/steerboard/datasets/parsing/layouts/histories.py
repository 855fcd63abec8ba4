"""An instruction after earlier turns in a column of their own, as LlamaFactory's alpaca format has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row, without
from steerboard_files.records import Problem

_ASKED = ("instruction", "prompt", "query", "question")
_MORE = "input"


def _history(rows: Sequence[Row]) -> Convert | None:
    return _with_history if any(_rounds(row.get("history")) and _question_column(row) for row in rows) else None


def _with_history(_: int, row: Row) -> Iterator[Row | Problem]:
    column, rounds = _question_column(row), row.get("history") or []
    if column is None or (rounds and not _rounds(rounds)):
        yield Problem("bad_row", "history: is not a list of [question, answer] before an instruction")
        return
    text, more = row[column], row.get(_MORE)
    last = f"{text}\n\n{more}" if isinstance(more, str) and more.strip() else text
    turns = [turn for question, answer in rounds for turn in (_turn("user", question), _turn("assistant", answer))]
    yield {"prompt": [*turns, _turn("user", last)], **without(row, column, _MORE, "history")}


def _question_column(row: Row) -> str | None:
    return next((name for name in _ASKED if isinstance(row.get(name), str)), None)


def _turn(role: str, content: str) -> Row:
    return {"role": role, "content": content}


def _rounds(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_round(round_) for round_ in value)


def _is_round(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(text, str) for text in value)


HISTORIES = (Layout("history", "an instruction with earlier turns in `history` (LlamaFactory)", _history),)
