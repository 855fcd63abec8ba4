"""Columns of a file from which no field is taken: what they are, and what they could be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steerboard.datasets.parsing.messages import other_fields
from steerboard.datasets.schemas import UnusedColumn
from steerboard_contracts.attribute_names import NAME_PATTERN
from steerboard_contracts.samples import ATTRIBUTES, SampleKind

_GRADE = re.compile(r"score|rating|grade|reward|quality|points|stars|likert", re.IGNORECASE)
_MARGIN = re.compile(r"margin|strength|diff|gap", re.IGNORECASE)
_THUMB = re.compile(r"good|bad|thumb|like|accept|desirable|correct", re.IGNORECASE)
_ANSWER = re.compile(r"response|answer|output|completion|conversation|reply|text|assistant", re.IGNORECASE)
_WINNER = re.compile(r"winner|prefer|better|choice|verdict", re.IGNORECASE)
# Numbers that are not grades.
_COUNT = re.compile(r"(^|_)(id|idx|index|row|turns?|seed|tokens?|length|count|n|time|timestamp|group|candidate)$", re.I)
_SIDES = (("a", "b"), ("1", "2"), ("0", "1"))


@dataclass(frozen=True)
class WinnerLayout:
    """Two answers and which of them is better, instead of a chosen and a rejected one."""

    a: str
    b: str
    winner: str

    @property
    def words(self) -> str:
        return (
            f"{self.a} and {self.b} look like two answers, and {self.winner} like the better one of them, but its "
            f"values are none of {self.a}, {self.b}, A, B, 1, 2, left, right and tie. Write the better answer of each "
            "row as `chosen` and the other as `rejected`, and import that as preferences."
        )


def looks_like_answers(name: str) -> bool:
    """Whether a column is called like answers or conversations, as `response_a` is."""
    return _ANSWER.search(name) is not None


def winner_columns(columns: Sequence[str]) -> list[str]:
    """Columns that are called like a verdict, and not like how clear it is."""
    return [name for name in columns if _WINNER.search(name) and not _MARGIN.search(name)]


def answer_columns(columns: Sequence[str]) -> tuple[str, str] | None:
    """`response_a` and `response_b`, and their like."""
    known = {name.lower(): name for name in columns if not _WINNER.search(name)}
    for suffix, other in _SIDES:
        for lower, name in known.items():
            partner = known.get(f"{lower.removesuffix(suffix)}{other}")
            if lower.endswith(suffix) and partner and (_ANSWER.search(name) or lower == suffix):
                return name, partner
    return None


def winner_layout(columns: Sequence[str]) -> WinnerLayout | None:
    """`response_a`, `response_b`, `winner` and their like."""
    winners, answers = winner_columns(columns), answer_columns(columns)
    return WinnerLayout(*answers, winners[0]) if winners and answers else None


def unused_columns(
    kind: SampleKind,
    columns: Sequence[str],
    rows: Sequence[dict[str, Any]],
    read: frozenset[str],
    dropped: frozenset[str],
) -> list[UnusedColumn]:
    """The columns that are not `read`, in the file's order. `dropped`: names that are not even kept with the rows."""
    return [
        UnusedColumn(name=name, kept=name not in dropped, **_could_be(kind, name, [row.get(name) for row in rows]))
        for name in columns
        if name not in read
    ]


def unused_of_messages(rows: Sequence[dict[str, Any]], read: frozenset[str]) -> list[UnusedColumn]:
    """What the messages of a column have beyond their turns, as `messages.language`."""
    names: dict[str, None] = {}
    for row in rows:
        for column in read & row.keys():
            if isinstance(row[column], list):
                names |= dict.fromkeys(f"{column}.{name}" for name in other_fields(row[column]))
    return [UnusedColumn(name=name, kept=False) for name in sorted(names)]


def _could_be(kind: SampleKind, name: str, values: Sequence[Any]) -> dict[str, Any]:
    given = [value for value in values if value not in (None, "")]
    if kind == "instructions" and _GRADE.search(name) and _all(is_number, given):
        return {"kind": "labelled", "field": "reward"}
    if kind == "labelled" and re.fullmatch(NAME_PATTERN, name) and not _COUNT.search(name) and _all(is_number, given):
        return {"kind": "labelled", "field": f"{ATTRIBUTES}.{name}"}
    if kind == "preferences" and _MARGIN.search(name) and _all(is_number, given):
        return {"kind": "preferences", "field": "margin"}
    if kind == "instructions" and _THUMB.search(name) and _all(_is_yes_or_no, given):
        return {"kind": "unpaired", "field": "desirable"}
    return {}


def _all(test: Any, values: Sequence[Any]) -> bool:
    return bool(values) and all(map(test, values))


def is_number(value: Any) -> bool:
    """Whether a value is a number, or a text that spells one."""
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_yes_or_no(value: Any) -> bool:
    return isinstance(value, bool) or str(value).lower() in ("0", "1", "true", "false", "yes", "no")
