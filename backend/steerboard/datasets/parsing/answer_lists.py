"""Rows with a list of right and a list of wrong answers, as RewardBench 2 publishes them: one row for each answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from steerboard.datasets.formats.records import Problem, Record

_RIGHT, _WRONG = "chosen", "rejected"
# What an answer's own row has instead; a file with one of these means something else by its lists.
_MADE = ("response", "reward", "group", "candidate")
# As with a compressed file, a small one must not become a huge dataset.
MOST_ANSWERS = 100


def one_row_each(records: Iterable[tuple[str | None, Record]]) -> Iterator[tuple[str | None, Record]]:
    """Answers of one record are a group, in which the right ones come first, with a reward of 1 for those and of 0 for
    the others. Its `id` becomes their `item`. Other records pass as they are."""
    for group, (label, (number, record)) in enumerate(records):
        lists = _lists(record)
        if lists is None or not isinstance(record, dict):
            yield label, (number, record)
            continue
        right, wrong = lists
        if len(right) + len(wrong) > MOST_ANSWERS:
            yield label, (number, Problem("bad_row", f"has more than {MOST_ANSWERS} answers"))
            continue
        rest = {name: value for name, value in record.items() if name not in (_RIGHT, _WRONG)}
        if isinstance(rest.get("id"), str) and "item" not in rest:
            rest["item"] = rest.pop("id")
        for candidate, answer in enumerate(right + wrong):
            made = {"response": answer, "reward": float(candidate < len(right)), "group": group, "candidate": candidate}
            yield label, (number, {**rest, **made})


def _lists(record: dict[str, Any] | Problem) -> tuple[list[str], list[str]] | None:
    if isinstance(record, Problem) or any(name in record for name in _MADE):
        return None
    right, wrong = record.get(_RIGHT), record.get(_WRONG)
    if not isinstance(right, list) or not isinstance(wrong, list) or not right or not wrong:
        return None
    return (right, wrong) if all(isinstance(answer, str) for answer in right + wrong) else None
