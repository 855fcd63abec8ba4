"""Two answers whose better one follows from votes, from scores, or from a scale with a sign. How clear it is becomes
the margin."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from steerboard.datasets.parsing.layouts.arena import Arena, Verdict, preferences
from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row
from steerboard.datasets.parsing.unused_columns import answer_columns, is_number

_ANNOTATOR = re.compile(r"(annotator|rater|labell?er)[ _-]?\d+", re.IGNORECASE)
_VOTES: dict[float, Verdict] = {0: "tie", 1: "a", 2: "b"}
_SIGNED = ("overall_preference", "preference_strength")
_INDIVIDUAL = "individual_preference"
_GRADES = ("score", "rating", "grade", "reward")
_NEVER = ("chosen", "rejected")
_SHP = ("history", "human_ref_A", "human_ref_B", "labels")


def number_of(value: Any) -> float | None:
    """A finite number, also where it is a text as in CSV."""
    if not is_number(value):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _sides(rows: Sequence[Row]) -> tuple[list[str], str, str] | None:
    """(columns, the two that hold answers)."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    sides = None if any(name in columns for name in _NEVER) else answer_columns(columns)
    return None if sides is None else (columns, *sides)


def _converting(arena: Arena) -> Convert:
    return lambda _, row: preferences(row, arena)


def _annotated(rows: Sequence[Row]) -> Convert | None:
    sides = _sides(rows)
    if sides is None:
        return None
    columns, a, b = sides
    voters = tuple(name for name in columns if _ANNOTATOR.fullmatch(name))
    votes = [row[name] for row in rows for name in voters if row.get(name) not in (None, "")]
    if not votes or not a.endswith("1") or any(number_of(vote) not in _VOTES for vote in votes):
        return None
    return _converting(
        Arena(a, b, voters, partial(_majority, voters), partial(_lead, voters), "are not votes of 1, 2, or 0 for a tie")
    )


def _counted(voters: Sequence[str], row: Row) -> Counter[Verdict] | None:
    """Votes for each side; None where one of them cannot be read."""
    given = [number_of(row[name]) for name in voters if row.get(name) not in (None, "")]
    votes = Counter(_VOTES[vote] for vote in given if vote in _VOTES)
    return votes if given and votes.total() == len(given) else None


def _majority(voters: Sequence[str], row: Row) -> Verdict | None:
    """What more annotators say than anything else. Where there is no such thing, neither answer is the better one."""
    votes = _counted(voters, row)
    if votes is None:
        return None
    (first, most), *others = votes.most_common()
    return "tie" if others and others[0][1] == most else first


def _lead(voters: Sequence[str], row: Row) -> float | None:
    """Votes for the better answer less those for the other one."""
    votes = _counted(voters, row)
    return None if votes is None else float(abs(votes["a"] - votes["b"]))


def _signed(rows: Sequence[Row]) -> Convert | None:
    """HelpSteer's scale: below 0 the first answer is the better one, above it the second."""
    sides = _sides(rows)
    if sides is None:
        return None
    columns, a, b = sides
    name = next((name for name in _SIGNED if name in columns), None)
    values = [number_of(row[name]) for row in rows if row.get(name) not in (None, "")] if name else []
    # A 1 and a 2 without a sign may as well be the number of an answer, or how clear a verdict is.
    sure = _INDIVIDUAL in columns or any(value is not None and value < 0 for value in values)
    if name is None or not values or None in values or not sure or not a.endswith("1"):
        return None

    def verdict(row: Row) -> Verdict | None:
        value = number_of(row.get(name))
        return None if value is None else _by_size(-value, value)

    def strength(row: Row) -> float | None:
        value = number_of(row.get(name))
        return None if value is None else abs(value)

    return _converting(Arena(a, b, (name,), verdict, strength, "is not a number"))


def _scored(rows: Sequence[Row]) -> Convert | None:
    sides = _sides(rows)
    if sides is None:
        return None
    columns, a, b = sides
    scores = _score_columns(columns, a[-1].lower(), b[-1].lower())
    values = [number_of(row[name]) for row in rows for name in scores if row.get(name) not in (None, "")]
    if not values or None in values:
        return None
    return _converting(_by_scores(a, b, *scores))


def _score_columns(columns: Sequence[str], a: str, b: str) -> tuple[str, ...]:
    known = {name.lower(): name for name in columns}
    for grade in _GRADES:
        for between in ("_", " ", ""):
            pair = [known.get(f"{grade}{between}{end}") for end in (a, b)]
            if pair[0] is not None and pair[1] is not None:
                return pair[0], pair[1]
    return ()


def _by_scores(a: str, b: str, score_a: str, score_b: str) -> Arena:
    def verdict(row: Row) -> Verdict | None:
        scores = number_of(row.get(score_a)), number_of(row.get(score_b))
        return None if scores[0] is None or scores[1] is None else _by_size(scores[0], scores[1])

    def strength(row: Row) -> float | None:
        scores = number_of(row.get(score_a)), number_of(row.get(score_b))
        return None if scores[0] is None or scores[1] is None else abs(scores[0] - scores[1])

    return Arena(a, b, (score_a, score_b), verdict, strength, "are not two scores")


def _by_size(a: float, b: float) -> Verdict:
    return "tie" if a == b else "a" if a > b else "b"


def _shp(rows: Sequence[Row]) -> Convert | None:
    if not any(all(name in row for name in _SHP) for row in rows):
        return None
    _, a, b, label = _SHP
    read: dict[float | None, Verdict] = {1: "a", 0: "b"}

    def ratio(row: Row) -> float | None:
        return number_of(row.get("score_ratio"))

    return _converting(Arena(a, b, (label,), lambda row: read.get(number_of(row.get(label))), ratio, "is not 0 or 1"))


SIGNED = Layout("HelpSteer", "two answers and a preference from -3 to 3, which becomes the margin; 0 is a tie", _signed)
JUDGED_PAIRS = (
    Layout(
        "votes of annotators", "two answers and annotator1, annotator2 ... (PandaLM); the majority counts", _annotated
    ),
    Layout("two answers and scores", "answer_0, answer_1, score_0, score_1 (WebGPT), and their like", _scored),
    Layout("SHP", "SHP's history, human_ref_A, human_ref_B and labels; score_ratio becomes the margin", _shp),
)
