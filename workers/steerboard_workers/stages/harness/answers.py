"""Answers to the harness's requests, each kept as it is made: a killed stage asks none of them again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from steerboard_contracts.files.resumable_rows import ResumableRows

KEY = ("key", "n")


class RecordedAnswers:
    """Each is kept under its request and the number of times that this was asked before: where a task samples several
    answers to one request, each counts.

    The harness calls `add_partial` as soon as a batch is answered (it is the `cache_hook` of its models)."""

    def __init__(self, kept: ResumableRows, progress: Callable[[int, int], None]) -> None:
        self._kept = kept
        self._progress = progress
        self._counts: Counter[str] = Counter(row["key"] for row in kept.rows.values())
        self._done = self._total = 0
        self.asked = 0

    def add_partial(self, kind: str, args: Iterable[Any], answer: Any) -> None:
        key = _key(kind, args)
        self._kept.add([{"key": key, "n": self._counts[key], "answer": answer}])
        self._counts[key] += 1
        self.asked += 1
        self._done += 1
        self._progress(min(self._done, self._total), self._total)

    def fill(self, kind: str, requests: Sequence[Any], ask: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
        """The answer to each request, in order; `ask` gives those that are missing."""
        seen: Counter[str] = Counter()
        places: list[tuple[str, int]] = []
        for request in requests:
            key = _key(kind, request.args)
            places.append((key, seen[key]))
            seen[key] += 1
        missing = [place for place, where in enumerate(places) if where not in self._kept]
        self._total = len(requests)
        self._done = len(requests) - len(missing)
        self._progress(self._done, self._total)
        if missing:
            for place, answer in zip(missing, ask([requests[place] for place in missing]), strict=True):
                if places[place] not in self._kept:
                    self.add_partial(kind, requests[place].args, answer)
        answers = [self._kept.rows[where]["answer"] for where in places]
        return [tuple(answer) if isinstance(answer, list) else answer for answer in answers]


def _key(kind: str, args: Iterable[Any]) -> str:
    return hashlib.sha256(json.dumps([kind, *args], sort_keys=True).encode()).hexdigest()
