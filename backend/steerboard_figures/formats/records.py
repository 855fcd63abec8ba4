"""What the readers yield, whatever the project, and how they take fields out of a row."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steerboard_files.texts import storable

# Possessive, so that no text makes it slow.
_NUMBER = re.compile(r"[+-]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d{1,3}+)?+", re.ASCII)
# What tables and scripts write for a number that is missing.
_MISSING = ("", "nan", "none", "null")
_LONGEST_NUMBER = 50
_MILLISECONDS = 4e9
# Where rows name who judged.
JUDGES = ("judge", "voter", "annotator")


class Unreadable(ValueError):
    """Why a row is not what its format wants. The message follows `line 12`."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as in `EvaluationPrompt`. `question_id` None: the row's place in its file is its id."""

    question_id: str | None
    category: str | None
    messages: list[dict[str, str]]
    follow_ups: list[str]
    reference: list[str] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """One sample of one model. `prompt`: the text of the question where the file repeats it; `at`: seconds since 1970.

    `answer_id` is what reviews of the Vicuna announcement refer to.
    """

    model: str
    question_id: str | None
    prompt: str | None
    sample: int
    turns: list[str]
    tokens: list[int] | None = None
    at: float | None = None
    answer_id: str | None = None


@dataclass(frozen=True, slots=True)
class Judgment:
    """One verdict, as in `Verdict`, with names for entrants. An entrant is named by model or, in reviews, by answer.

    `other` None: a score of `model` alone. `value` None: see `status`. `outputs`: the answers of model and other where
    the file repeats them.
    """

    model: str | None
    other: str | None
    question_id: str | None
    prompt: str | None
    turn: int
    value: float | None
    status: str
    a_first: bool | None = None
    weight: int = 1
    raw: str | None = None
    detail: str | None = None
    judge: str | None = None
    # The judge's prompt template, or which of several reviewers it was.
    template: str | None = None
    at: float | None = None
    answer_id: str | None = None
    place: int = 0
    outputs: tuple[str | None, str | None] = (None, None)
    # Whether the row has a `turn`: of rows without one, two on one question may be of two turns.
    turn_given: bool = True
    # Arena-Hard v0.1 only: against the baseline of the benchmark, which the row does not name.
    against_baseline: bool = field(default=False)


def text(row: Mapping[str, Any], name: str) -> str:
    """Raises `Unreadable` where there is no such text."""
    value = row.get(name)
    if not isinstance(value, str):
        raise Unreadable(f"has no text in `{name}`" if value is None else f"has {_kind(value)} in `{name}`, not a text")
    return storable(value)


def optional_text(row: Mapping[str, Any], name: str) -> str | None:
    return None if row.get(name) is None else text(row, name)


def named(row: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that there is, as a name that is not blank."""
    name = next((field for field in names if row.get(field) is not None), names[0])
    value = text(row, name).strip()
    if not value or len(value) > 500:
        raise Unreadable(f"has a `{name}` that is blank or longer than 500 characters")
    return value


def identifier(row: Mapping[str, Any], *names: str) -> str | None:
    """An id, written as a number or a text; 81, 81.0, "81" and " 81" are the same. A blank text is none."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str):
            value = value.strip()
        if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | str) or len(str(value)) > 200:
            raise Unreadable(f"has {_kind(value)} in `{name}`, not an id")
        return storable(str(value))
    return None


def named_judge(row: Mapping[str, Any], *names: str) -> str | None:
    """The first of these fields that names someone: a name, a number, or a list that begins with the name. Raises
    `Unreadable`."""
    for name in names:
        value = row.get(name)
        judge = identifier({name: value[0] if isinstance(value, list) and value else value}, name)
        if judge is not None:
            return judge
    return None


def number(row: Mapping[str, Any], name: str) -> float | None:
    """A finite number, also one written as a text; None for null, NaN and what else tables write for a missing one."""
    value = row.get(name)
    if isinstance(value, str):
        value = _number_in(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e100:
        raise Unreadable(f"has {row[name]!r} in `{name}`, not a number"[:200])
    return float(value)


def score(row: Mapping[str, Any], name: str, low: float, high: float, unparsed: float) -> float | None:
    """A `number` of a scale, or the number that means none. Raises `Unreadable` outside of the scale."""
    value = number(row, name)
    if value is not None and value != unparsed and not low <= value <= high:
        raise Unreadable(f"has {value:g} in `{name}`, outside of {low:g} to {high:g}")
    return value


def _number_in(text: str) -> object:
    """The number, None for one that is missing, or the text where it is neither."""
    stripped = text.strip()
    if stripped.lower() in _MISSING:
        return None
    return float(stripped) if len(stripped) < _LONGEST_NUMBER and _NUMBER.fullmatch(stripped) else text


def turn_of(row: Mapping[str, Any]) -> int:
    """1 where the row has none. Raises `Unreadable` outside of 1 to 100."""
    value = number(row, "turn")
    if value is None:
        return 1
    if not value.is_integer() or not 1 <= value <= 100:
        raise Unreadable(f"has {value:g} in `turn`")
    return int(value)


def moment(row: Mapping[str, Any], name: str = "tstamp") -> float | None:
    """Seconds since 1970, of a number of seconds or milliseconds or of an ISO date; None where it makes no date.

    It only decides which of several rows is the newest, so a row is never refused for it.
    """
    value = row.get(name)
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        try:
            at = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        value = (at if at.tzinfo else at.replace(tzinfo=dt.UTC)).timestamp()
    try:
        seconds = number({name: value}, name)
    except Unreadable:
        return None
    if seconds is not None and _MILLISECONDS <= seconds < _MILLISECONDS * 1000:
        seconds /= 1000
    return seconds if seconds is not None and 0 <= seconds < _MILLISECONDS else None


def texts(value: object, name: str) -> list[str]:
    """A list of texts. Raises `Unreadable`."""
    if not isinstance(value, list) or not value or not all(isinstance(part, str) for part in value):
        raise Unreadable(f"has no list of texts in `{name}`")
    return [storable(part) for part in value]


def status_of(row: Mapping[str, Any], otherwise: str) -> str:
    """Why a verdict has no value, as our own exports say it."""
    status = row.get("status")
    return status if status in ("unparsed", "refused", "error") else otherwise


def question_id_out(question_id: str) -> int | str:
    """FastChat's ids are numbers."""
    plain = question_id.isascii() and question_id.isdecimal() and str(int(question_id[:18])) == question_id
    return int(question_id) if plain else question_id


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def split_turns(turns: Sequence[str]) -> tuple[list[dict[str, str]], list[str]]:
    """(messages, follow_ups) of the user's turns."""
    return [user(turns[0])], list(turns[1:])


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "something else" if not isinstance(value, str) else "a text")
