"""Several answers to a prompt in one row, which become a row each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row, without
from steerboard_contracts.attribute_names import NAME_PATTERN
from steerboard_files.records import Problem

_RIGHT, _WRONG = "chosen", "rejected"
# What an answer's own row has instead; a file with one of these means something else by its lists.
_MADE = ("response", "reward", "group", "candidate")
# As with a compressed file, a small one must not become a huge dataset.
MOST_ANSWERS = 100
_TOO_MANY = Problem("bad_row", f"has more than {MOST_ANSWERS} answers")
_TEXTS = ("response", "text", "output")
_GRADES = ("overall_score", "score", "rating", "reward")
_NAME = re.compile(NAME_PATTERN).fullmatch
_LISTS = ("responses", "completions", "answers", "candidates", "generations")
_LISTS_OF_GRADES = ("scores", "rewards", "ratings")


def _right_and_wrong(rows: Sequence[Row]) -> Convert | None:
    return _of_right_and_wrong if any(_answer_lists(row) is not None for row in rows) else None


def _of_right_and_wrong(group: int, row: Row) -> Iterator[Row | Problem]:
    """Answers of one record are a group, in which the right ones come first, with a reward of 1 for those and of 0 for
    the others. Its `id` becomes their `item`. Other records pass as they are."""
    lists = _answer_lists(row)
    if lists is None:
        yield row
        return
    right, wrong = lists
    if len(right) + len(wrong) > MOST_ANSWERS:
        yield _TOO_MANY
        return
    rest = without(row, _RIGHT, _WRONG)
    if isinstance(rest.get("id"), str) and "item" not in rest:
        rest["item"] = rest.pop("id")
    for candidate, answer in enumerate(right + wrong):
        yield {**rest, "response": answer, "reward": float(candidate < len(right)), **_place(group, candidate)}


def _answer_lists(row: Row) -> tuple[list[str], list[str]] | None:
    if any(name in row for name in _MADE):
        return None
    right, wrong = row.get(_RIGHT), row.get(_WRONG)
    if not isinstance(right, list) or not isinstance(wrong, list) or not right or not wrong:
        return None
    return (right, wrong) if all(isinstance(answer, str) for answer in right + wrong) else None


def _place(group: int, candidate: int) -> Row:
    return {"group": group, "candidate": candidate}


def _completions(rows: Sequence[Row]) -> Convert | None:
    """UltraFeedback as it was published: completions with a grade each, and with ratings of several aspects."""
    for name in _LISTS:
        if any(_are_graded(row.get(name)) for row in rows) and not any(made in row for row in rows for made in _MADE):
            return lambda group, row: _of_completions(group, row, name)
    return None


def _are_graded(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(completion, dict)
        and _first(completion, _TEXTS)
        and (_first(completion, _GRADES) or "annotations" in completion)
        for completion in value
    )


def _of_completions(group: int, row: Row, name: str) -> Iterator[Row | Problem]:
    given, rest = row.get(name), without(row, name)
    if not isinstance(given, list) or not given:
        yield Problem("bad_row", f"{name}: has no answers")
    elif len(given) > MOST_ANSWERS:
        yield _TOO_MANY
    else:
        for candidate, completion in enumerate(given):
            text = _first(completion, _TEXTS) if isinstance(completion, dict) else None
            if text is None:
                yield Problem("bad_row", f"{name}.{candidate}: has no text of an answer")
                continue
            grade = _first(completion, _GRADES)
            made = {
                "response": completion[text],
                "attributes": _ratings(completion.get("annotations")),
                **_place(group, candidate),
            }
            if grade:
                made["reward"] = completion[grade]
            yield {**rest, **without(completion, text, grade or "", "annotations"), **made}


def _ratings(annotations: Any) -> dict[str, float] | None:
    """{aspect: rating} of UltraFeedback's annotations, without what is not a number."""
    ratings = {}
    for aspect, given in annotations.items() if isinstance(annotations, dict) else ():
        try:
            ratings[aspect.replace("-", "_")] = float(given["Rating"])
        except (KeyError, TypeError, ValueError):
            continue
    return {name: value for name, value in ratings.items() if _NAME(name)} or None


def _first(row: Row, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if row.get(name) is not None), None)


def _side_by_side(rows: Sequence[Row]) -> Convert | None:
    """A list of answers and a list of their grades."""
    for name in _LISTS:
        for grades in _LISTS_OF_GRADES:
            if any(_texts(row.get(name)) and isinstance(row.get(grades), list) for row in rows):
                return lambda group, row: _of_lists(group, row, name, grades)
    return None


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def _of_lists(group: int, row: Row, name: str, grades: str) -> Iterator[Row | Problem]:
    answers, given = row.get(name), row.get(grades)
    if not isinstance(answers, list) or not isinstance(given, list) or len(answers) != len(given):
        yield Problem("bad_row", f"has other numbers of {name} and {grades}")
    elif len(answers) > MOST_ANSWERS:
        yield _TOO_MANY
    else:
        rest = without(row, name, grades)
        for candidate, (answer, grade) in enumerate(zip(answers, given, strict=True)):
            yield {**rest, "response": answer, "reward": grade, **_place(group, candidate)}


GRADED = (
    Layout("right and wrong answers", "RewardBench 2's lists of chosen and rejected answers", _right_and_wrong),
    Layout("graded completions", "UltraFeedback's completions with their scores and ratings", _completions),
    Layout("answers and grades", "a list of responses and a list of their scores", _side_by_side),
)
