"""Times of HTTP requests: in random order over one connection, percentiles of each and of all together."""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

BAR_P50_MS, BAR_P95_MS = 100.0, 300.0
_SEED = 0


def say(line: str) -> None:
    """Progress; standard output is for the one document."""
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Ask:
    """A request by name. Of several `paths` one is drawn each time; `bodies` go with them and make it a POST."""

    name: str
    paths: Sequence[str]
    params: Sequence[dict[str, Any]] = field(default=({},))
    bodies: Sequence[dict[str, Any]] | None = None

    def send(self, client: httpx.Client, rng: random.Random) -> httpx.Response:
        path, params = rng.choice(self.paths), rng.choice(self.params)
        if self.bodies is None:
            return client.get(path, params=params)
        return client.post(path, params=params, json=rng.choice(self.bodies))


@dataclass
class Times:
    """Milliseconds of one request. `first` is the one that nothing was warm for; it does not count."""

    first: float = 0.0
    counted: list[float] = field(default_factory=list)
    answer_bytes: int = 0
    failure: str | None = None

    def summary(self) -> dict[str, Any]:
        if self.failure is not None:
            return {"failed": self.failure}
        return {**figures(self.counted), "first_ms": round(self.first, 2), "answer_kb": round(self.answer_bytes / 1024)}


def figures(times: Sequence[float]) -> dict[str, Any]:
    """{p50_ms, p95_ms}; nulls of nothing."""
    return {"p50_ms": percentile(times, 0.50), "p95_ms": percentile(times, 0.95)}


def percentile(times: Sequence[float], share: float) -> float | None:
    """The smallest time that at least this share of all is not above."""
    if not times:
        return None
    return round(sorted(times)[max(0, math.ceil(share * len(times)) - 1)], 2)


def measure(asks: Sequence[Ask], times: int, send: Callable[[Ask, random.Random], httpx.Response]) -> dict[str, Times]:
    """Each of `asks` once for a start, and then `times` times, all of them shuffled. One that fails is left out."""
    rng = random.Random(_SEED)
    by_ask = {ask.name: Times() for ask in asks}
    order = [ask for ask in asks for _ in range(times)]
    rng.shuffle(order)
    for number, ask in enumerate([*asks, *order]):
        own = by_ask[ask.name]
        if own.failure is not None:
            continue
        began = time.perf_counter()
        answer = send(ask, rng)
        took = (time.perf_counter() - began) * 1000
        if answer.status_code != 200:
            own.failure = f"{answer.status_code} {answer.text[:300]}"
            say(f"  {ask.name} failed: {own.failure}")
        elif number < len(asks):
            own.first, own.answer_bytes = took, len(answer.content)
        else:
            own.counted.append(took)
    return by_ask


def group(by_ask: dict[str, Times]) -> dict[str, Any]:
    """The document of a group: all its times together, each request, and those that miss the bar."""
    requests = {name: times.summary() for name, times in by_ask.items()}
    missed = [
        name
        for name, summary in requests.items()
        if "failed" in summary or summary["p50_ms"] > BAR_P50_MS or summary["p95_ms"] > BAR_P95_MS
    ]
    everything = [seconds for times in by_ask.values() for seconds in times.counted]
    return {**figures(everything), "missed": missed, "requests": requests}


def tell(title: str, document: dict[str, Any]) -> None:
    say(f"{title}: p50 {document['p50_ms']} ms, p95 {document['p95_ms']} ms; missed: {document['missed'] or 'none'}")
    for name, request in document["requests"].items():
        say(f"  {name:<28} {request.get('p50_ms')!s:>9} {request.get('p95_ms')!s:>9}  first {request.get('first_ms')}")
