"""Answers by steps with a label for each, as PRM800K and Math-Shepherd were published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row, without
from steerboard_files.records import Problem

# As with a compressed file, a small one must not become a huge dataset.
MOST_PATHS = 500
_RATINGS = (-1, 0, 1)
# Math-Shepherd's token behind each step of `input`; `label` has + or - in its place.
_TAG = "ки"
_FIRST_STEP = re.compile(r"\bStep 1\s*:")


def _prm800k(rows: Sequence[Row]) -> Convert | None:
    return _of_ratings if any(_rated(row) is not None for row in rows) else None


def _rated(row: Row) -> tuple[Row, list[Any]] | None:
    question, label = row.get("question"), row.get("label")
    if not isinstance(question, dict) or not isinstance(label, dict) or not isinstance(label.get("steps"), list):
        return None
    return question, label["steps"]


def _of_ratings(_: int, row: Row) -> Iterator[Row | Problem]:
    """A row for the path that was taken, and one for each completion that was rated and not taken, behind the steps
    before it. A step is wrong that is rated -1: neutral ones count as right, as in the paper (arXiv 2305.20050)."""
    rated = _rated(row)
    if rated is None:
        yield Problem("bad_row", "has no `question` and `label.steps`, unlike other rows")
        return
    question, steps = rated
    rest = {**without(row, "question", "label"), "ground_truth_answer": question.get("ground_truth_answer")}
    paths = _paths(steps)
    if isinstance(paths, Problem):
        yield paths
        return
    for path in paths:
        labelled = {"completions": [text for text, _ in path], "labels": [right for _, right in path]}
        yield {**rest, "prompt": question.get("problem"), **labelled}


def _paths(steps: list[Any]) -> list[list[tuple[Any, bool]]] | Problem:
    paths: list[list[tuple[Any, bool]]] = []
    taken: list[tuple[Any, bool]] = []
    for number, step in enumerate(steps):
        place = f"label.steps.{number}"
        completions = (step.get("completions") or []) if isinstance(step, dict) else None
        if not isinstance(completions, list) or not all(isinstance(one, dict) for one in completions):
            return Problem("bad_row", f"{place}: has no list of completions")
        chosen, human = step.get("chosen_completion"), step.get("human_completion")
        following = (_text_of(human), True) if human else None
        for at, completion in enumerate(completions):
            rating = completion.get("rating")
            if rating is None:
                continue
            if rating not in _RATINGS:
                return Problem("bad_row", f"{place}.completions.{at}.rating: is none of -1, 0 and 1")
            judged = (completion.get("text"), rating >= 0)
            if at == chosen:
                following = judged
            else:
                paths.append([*taken, judged])
        if len(paths) > MOST_PATHS:
            return Problem("bad_row", f"label.steps: has more than {MOST_PATHS} completions")
        if following is None:
            break
        taken.append(following)
    # Where no completion of a step was taken, each of them has the steps before it.
    whole = taken and taken not in [path[: len(taken)] for path in paths]
    return [*paths, taken] if whole else paths or Problem("bad_row", "label.steps: has no step with a rating")


def _text_of(human: Any) -> Any:
    return human.get("text") if isinstance(human, dict) else human


def _math_shepherd(rows: Sequence[Row]) -> Convert | None:
    return _of_tags if any(_is_tagged(row) for row in rows) else None


def _is_tagged(row: Row) -> bool:
    given = row.get("input")
    return isinstance(given, str) and _TAG in given and isinstance(_marks(given, row.get("label")), list)


def _of_tags(_: int, row: Row) -> Iterator[Row | Problem]:
    """The prompt is what comes before `Step 1:`."""
    given = row.get("input")
    if not isinstance(given, str) or _TAG not in given:
        yield Problem("bad_row", f"input: has no step that ends with {_TAG}, unlike other rows")
        return
    labels = _marks(given, row.get("label"))
    if isinstance(labels, Problem):
        yield labels
        return
    begin = _FIRST_STEP.search(given)
    if begin is None:
        yield Problem("bad_row", "input: has no `Step 1:` where the prompt ends")
        return
    steps = given[begin.start() :].split(_TAG)
    if len(steps) != len(labels) + 1:
        yield Problem("bad_row", f"input: has {_TAG} before `Step 1:`")
    elif steps[-1].strip():
        yield Problem("bad_row", f"input: has text behind its last {_TAG}")
    else:
        answer = {"completions": [step.strip() for step in steps[:-1]], "labels": labels}
        yield {**without(row, "input", "label"), "prompt": given[: begin.start()].strip(), **answer}


def _marks(given: str, label: Any) -> list[bool] | Problem:
    """What `label` has in place of each tag of `given`, which it repeats otherwise."""
    fault = Problem("bad_row", f"label: is not the text of `input` with + or - for each {_TAG}")
    if not isinstance(label, str):
        return fault
    marks, at = [], 0
    for number, piece in enumerate(given.split(_TAG)):
        if number:
            marks.append(label[at : at + 1])
            at += 1
        if label[at : at + len(piece)] != piece:
            return fault
        at += len(piece)
    return [mark == "+" for mark in marks] if at == len(label) and {*marks} <= {"+", "-"} else fault


STEPWISE = (
    Layout("PRM800K", "PRM800K's steps with their ratings; every path that was rated becomes a row", _prm800k),
    Layout("Math-Shepherd", "Math-Shepherd's input with a tag behind each step, and label with + or -", _math_shepherd),
)
