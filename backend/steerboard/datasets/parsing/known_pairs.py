"""Two answers and a label that names the better one, as LLMBar publishes them: a preference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from steerboard.datasets.formats.records import Problem, Record

_OUTPUTS = ("output_1", "output_2")
_FIELDS = ("input", *_OUTPUTS, "label")
# A file with one of these means something else by its outputs.
_OTHERS = ("prompt", "instruction", "chosen", "rejected")


def as_preferences(records: Iterable[tuple[str | None, Record]]) -> Iterator[tuple[str | None, Record]]:
    """{input, output_1, output_2, label} becomes {prompt, chosen, rejected}; other records pass as they are."""
    for label, (number, record) in records:
        yield label, (number, _preference(record))


def _preference(record: dict[str, Any] | Problem) -> dict[str, Any] | Problem:
    if isinstance(record, Problem) or not all(name in record for name in _FIELDS):
        return record
    if any(name in record for name in _OTHERS):
        return record
    better = str(record["label"]).strip()
    if better not in ("1", "2"):
        return Problem("bad_row", f"has {better[:80]!r} in `label`, which is neither 1 nor 2")
    chosen, rejected = _OUTPUTS if better == "1" else _OUTPUTS[::-1]
    rest = {name: value for name, value in record.items() if name not in _FIELDS}
    return {"prompt": record["input"], "chosen": record[chosen], "rejected": record[rejected], **rest}
