"""Judgments that may be of another turn: of two that a file does not tell apart, the newest alone would count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

Whom = TypeVar("Whom", bound=Hashable)


class Said(NamedTuple, Generic[Whom]):
    """A verdict of one judge. `whom`: the entrants and their order; `given`: whether its row has a turn; `value`: None
    where it is unparsed, and counted as that; `at`: seconds since 1970, or None."""

    whom: Whom
    question: Hashable
    turn: int
    given: bool
    value: float | None
    raw: Hashable
    at: float | None


def unknown_turns(verdicts: Iterable[Said[Whom]]) -> Counter[Whom]:
    """By `whom`: verdicts that may be of another turn than the one they count for. They have no turn, or their question
    lacks a turn that most have while one of its turns has several verdicts; in both cases different ones, for a copy
    adds nothing. Or one text of one moment is there for two turns."""
    said: dict[Whom, dict[tuple[Hashable, int, bool], set[tuple[object, ...]]]] = {}
    for one in verdicts:
        about = one.question, one.turn, one.given
        known = said.setdefault(one.whom, {}).setdefault(about, set())
        if one.value is not None:
            known.add((one.value, one.raw, one.at))
    return Counter({whom: found for whom, mine in said.items() if (found := _unknown(mine))})


def _unknown(said: dict[tuple[Hashable, int, bool], set[tuple[object, ...]]]) -> int:
    turns: dict[Hashable, set[int]] = {}
    for question, turn, given in said:
        turns.setdefault(question, set()).update({turn} if given else set())
    asked = Counter(turn for known in turns.values() for turn in known)
    usual = {turn for turn, questions in asked.items() if questions > len(turns) / 2}
    timed: dict[Hashable, set[tuple[object, ...]]] = {}
    found = 0
    for (question, _, given), each in said.items():
        several, known = max(len(each) - 1, 0), timed.setdefault(question, set())
        found += max(min(several, len(usual - turns[question])), len(each & known)) if given else several
        known |= {one for one in each if None not in one[1:]}
    return found
