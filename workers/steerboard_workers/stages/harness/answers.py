"""Answers to the harness's requests, each kept as it is made: a killed stage asks none of them again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.pinned_endpoint import PinnedEndpoint

KEY = ("key", "n")


@dataclass(frozen=True)
class Missing:
    """A request of the harness that has no answer yet. `n`: how many equal ones come before it."""

    request: Any
    key: str
    n: int

    @property
    def place(self) -> tuple[str, int]:
        """The place where its answer is kept (`KEY`)."""
        return self.key, self.n

    @property
    def seed(self) -> int:
        """The seed of its random numbers: the same however often the stage was killed, another one for each equal
        request."""
        return int.from_bytes(hashlib.sha256(f"{self.key}:{self.n}".encode()).digest()[:8], "big") >> 2


class RecordedAnswers:
    """Each is kept under its request and the number of times that this was asked before: where a task samples several
    answers to one request, each counts. `asked`: of an endpoint, who answers, so that another one's answers are not
    taken for its own.

    The harness calls `add_partial` as soon as a batch is answered (it is the `cache_hook` of its models)."""

    def __init__(
        self, kept: ResumableRows, progress: Callable[[int, int], None], asked: PinnedEndpoint | None = None
    ) -> None:
        self._kept = kept
        self._asked = [] if asked is None else [str(asked.id), asked.base_url, asked.model]
        self._progress = progress
        self._counts: Counter[str] = Counter(row["key"] for row in kept.rows.values())
        self._done = self._total = 0

    def add_partial(self, kind: str, args: Iterable[Any], answer: Any) -> None:
        key = self._key(kind, args)
        self._keep((key, self._counts[key]), answer)

    def keep(self, asked: Missing, answer: Any) -> None:
        self._keep(asked.place, answer)

    def fill(self, kind: str, requests: Sequence[Any], ask: Callable[[list[Missing]], Sequence[Any]]) -> list[Any]:
        """The answer to each request, in order; `ask` gives those that are missing, and may have kept them already."""
        seen: Counter[str] = Counter()
        places: list[Missing] = []
        for request in requests:
            key = self._key(kind, request.args)
            places.append(Missing(request, key, seen[key]))
            seen[key] += 1
        missing = [asked for asked in places if asked.place not in self._kept]
        self._total = len(requests)
        self._done = len(requests) - len(missing)
        self._progress(self._done, self._total)
        if missing:
            for asked, answer in zip(missing, ask(missing), strict=True):
                if asked.place not in self._kept:
                    self.keep(asked, answer)
        answers = [self._kept.rows[asked.place]["answer"] for asked in places]
        return [tuple(answer) if isinstance(answer, list) else answer for answer in answers]

    def _keep(self, place: tuple[str, int], answer: Any) -> None:
        key, n = place
        self._kept.add([{"key": key, "n": n, "answer": answer}])
        self._counts[key] += 1
        self._done += 1
        self._progress(min(self._done, self._total), self._total)

    def _key(self, kind: str, args: Iterable[Any]) -> str:
        return hashlib.sha256(json.dumps([*self._asked, kind, *args], sort_keys=True).encode()).hexdigest()
