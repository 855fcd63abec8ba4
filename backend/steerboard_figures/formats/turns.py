"""Judgments that may be of another turn: of two that a file does not tell apart, the newest alone would count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

Entrants = TypeVar("Entrants", bound=Hashable)
_Contents = set[tuple[object, ...]]
"""(value, text, time) of verdicts"""


class TurnVerdict(NamedTuple, Generic[Entrants]):
    """A verdict of one judge on these entrants in their order. `given`: whether its row has a turn; `value`: None where
    it is unparsed, and counted as that; `at`: seconds since 1970, or None."""

    entrants: Entrants
    question: Hashable
    turn: int
    given: bool
    value: float | None
    raw: Hashable
    at: float | None


def unknown_turns(verdicts: Iterable[TurnVerdict[Entrants]]) -> Counter[Entrants]:
    """The verdicts by entrants that may be of another turn than the one they count for. They have no turn, or their
    question lacks a turn that most have while one of its turns has several verdicts; in both cases different ones, for
    a copy adds nothing. Or one text of one moment is there for two turns."""
    contents: dict[Entrants, dict[tuple[Hashable, int, bool], _Contents]] = {}
    for verdict in verdicts:
        about = verdict.question, verdict.turn, verdict.given
        different = contents.setdefault(verdict.entrants, {}).setdefault(about, set())
        if verdict.value is not None:
            different.add((verdict.value, verdict.raw, verdict.at))
    return Counter({entrants: count for entrants, of_turns in contents.items() if (count := _unknown(of_turns))})


def _unknown(of_turns: dict[tuple[Hashable, int, bool], _Contents]) -> int:
    turns: dict[Hashable, set[int]] = {}
    for question, turn, given in of_turns:
        turns.setdefault(question, set()).update({turn} if given else set())
    counts = Counter(turn for asked_turns in turns.values() for turn in asked_turns)
    usual = {turn for turn, questions in counts.items() if questions > len(turns) / 2}
    timed: dict[Hashable, _Contents] = {}
    unknown = 0
    for (question, _, given), different in of_turns.items():
        several, earlier = max(len(different) - 1, 0), timed.setdefault(question, set())
        unknown += max(min(several, len(usual - turns[question])), len(different & earlier)) if given else several
        earlier |= {content for content in different if None not in content[1:]}
    return unknown
