"""Exports of annotation tools: the fields of a task next to what annotators answered, a row for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row
from steerboard_files.records import Problem

_NONE = Problem("bad_row", "has no answer of an annotator")
_LEFT_OUT = ("discarded", "draft", "pending")


def _label_studio(rows: Sequence[Row]) -> Convert | None:
    fits = any(isinstance(row.get("data"), dict) and isinstance(row.get("annotations"), list) for row in rows)
    return _from_label_studio if fits else None


def _from_label_studio(_: int, row: Row) -> Iterator[Row | Problem]:
    data, annotations = row.get("data"), row.get("annotations")
    if not isinstance(data, dict) or not isinstance(annotations, list):
        yield Problem("bad_row", "has no `data` and `annotations`, unlike other tasks")
        return
    given = [
        annotation
        for annotation in annotations
        if isinstance(annotation, dict) and not annotation.get("was_cancelled") and annotation.get("result")
    ]
    if not given:
        yield _NONE
    for annotation in given:
        answers = {
            result.get("from_name"): _chosen(result, data)
            for result in annotation["result"]
            if isinstance(result, dict)
        }
        yield {**data, **{str(name): value for name, value in answers.items() if name}, "task": row.get("id")}


def _chosen(result: Row, data: Row) -> Any:
    """What a control of the labelling interface holds: the name of the better answer, a rating, a choice, a text."""
    value = result.get("value")
    if not isinstance(value, dict):
        return value
    if "selected" in value:
        sides = str(result.get("to_name", "")).split(",")
        place = {"left": 0, "right": 1}.get(str(value["selected"]))
        named = place is not None and len(sides) == 2 and all(side in data for side in sides)
        return sides[place] if named and place is not None else value["selected"]
    for name in ("rating", "number", "choices", "text"):
        if name in value:
            choice = value[name]
            return choice[0] if isinstance(choice, list) and len(choice) == 1 else choice
    return value


def _argilla(rows: Sequence[Row]) -> Convert | None:
    fits = any(isinstance(row.get("fields"), dict) and isinstance(row.get("responses"), dict | list) for row in rows)
    return _from_argilla if fits else None


def _from_argilla(_: int, row: Row) -> Iterator[Row | Problem]:
    fields, responses = row.get("fields"), row.get("responses")
    if not isinstance(fields, dict):
        yield Problem("bad_row", "has no `fields`, unlike other records")
        return
    metadata = row.get("metadata") if isinstance(row.get("metadata"), dict) else {}
    answers = _by_annotator(responses)
    if not answers:
        yield _NONE
    for answer in answers:
        yield {**(metadata or {}), **fields, **answer}


def _by_annotator(responses: Any) -> list[Row]:
    """{question: value} of each. A response is below its question (version 2), or has the values of all (version 1)."""
    by_user: dict[Any, Row] = {}
    if isinstance(responses, dict):
        pairs = [
            (question, answer) for question, given in responses.items() if isinstance(given, list) for answer in given
        ]
    else:
        pairs = [
            (question, {**answer, **value})
            for answer in responses or []
            if isinstance(answer, dict) and isinstance(answer.get("values"), dict)
            for question, value in answer["values"].items()
            if isinstance(value, dict)
        ]
    for question, answer in pairs:
        if isinstance(answer, dict) and answer.get("status") not in _LEFT_OUT:
            by_user.setdefault(answer.get("user_id"), {})[question] = answer.get("value")
    return list(by_user.values())


ANNOTATIONS = (
    Layout("Label Studio", "Label Studio's JSON export, one row for each annotation", _label_studio),
    Layout("Argilla", "Argilla's records with fields and responses, one row for each annotator", _argilla),
)
