"""Two answers and which of them is better, as arenas and sheets have it: a preference, unless it is a tie."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from steerboard.datasets.parsing.layouts.arena import Arena, Verdict, preferences
from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row
from steerboard.datasets.parsing.unused_columns import answer_columns, winner_columns

_TIE = re.compile(r"(tie|tied|draw|both|neither|equal|same|even|none|no preference)\b.*|both_?(bad|good)", re.DOTALL)
_FIRST, _SECOND = {"left", "first", "1st"}, {"right", "second", "2nd"}
_NOUN = r"(?:(?:model|response|answer|assistant|option|output|completion|text|side|candidate|reply)[ _-]?)?"
_TRUE = ("1", "1.0", "true")
_NEVER = ("chosen", "rejected")


def _find(rows: Sequence[Row]) -> Convert | None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    sides = answer_columns(columns)
    if sides is None or any(name in columns for name in _NEVER):
        return None
    arena = _one_hot(columns, *sides) or _worded(columns, rows, *sides)
    return None if arena is None else lambda _, row: preferences(row, arena)


def _one_hot(columns: Sequence[str], a: str, b: str) -> Arena | None:
    """`winner_model_a`, `winner_model_b` and `winner_tie`, of which one is 1."""
    wins = {
        end: next((c for c in columns if re.fullmatch(rf"winner_(\w+_)?{end}", c, re.I)), None)
        for end in (a[-1], b[-1])
    }
    if None in wins.values():
        return None
    judged = tuple(name for name in (*wins.values(), "winner_tie") if name is not None)
    order: tuple[Verdict, ...] = ("a", "b", "tie")

    def verdict(row: Row) -> Verdict | None:
        won = [
            side
            for side, name in zip(order, judged, strict=False)
            if str(row.get(name)).lower() in ("1", "1.0", "true")
        ]
        return won[0] if len(won) == 1 else None

    return Arena(a, b, judged, verdict)


def _worded(columns: Sequence[str], rows: Sequence[Row], a: str, b: str) -> Arena | None:
    called = winner_columns(columns)
    others = [name for name in columns if name not in (a, b)]
    for winner in (*called, *(name for name in others if name not in called)):
        values = [str(row[winner]).strip().lower() for row in rows if row.get(winner) not in (None, "")]
        numbers = {int(value) for value in values if value.isdigit()}
        words = _words(a, b, numbers)
        verdicts = [words(value) for value in values]
        # A column of another name counts only where nothing else could be meant.
        sure = winner in called or bool({a.lower(), b.lower(), *_FIRST, *_SECOND} & {*values})
        if values and None not in verdicts and {"a", "b"} & {*verdicts} and sure:
            return Arena(a, b, (winner,), partial(_read, winner, words))
    return None


def _read(winner: str, words: Callable[[str], Verdict | None], row: Row) -> Verdict | None:
    return words(_text(row.get(winner)))


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip().lower()


def _words(a: str, b: str, numbers: set[int]) -> Callable[[str], Verdict | None]:
    """How to read a value, lower-cased. Numbers count from 0 only where the answers do."""
    first = 0 if a.endswith("0") else 1
    counted: dict[str, Verdict] = {str(first): "a", str(first + 1): "b"}
    if first == 1 and 2 in numbers:
        counted["0"] = "tie"

    def read(value: str) -> Verdict | None:
        bare = value.strip("[]() ")
        if bare in counted:
            return counted[bare]
        for side, name in (("a", a), ("b", b)):
            if bare == name.lower() or re.fullmatch(_NOUN + re.escape(name[-1].lower()), bare):
                return "a" if side == "a" else "b"
        if bare in _FIRST or bare in _SECOND:
            return "a" if bare in _FIRST else "b"
        return "tie" if _TIE.fullmatch(bare) else None

    return read


WINNERS = (
    Layout("two answers and a winner", "response_a, response_b, winner, and their like; ties are counted", _find),
)
