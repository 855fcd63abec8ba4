"""The live stream under many readers, some of whom never read: does everyone else still get answers, and every event?

The readers themselves are in `dashboard.readers`.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
from harness.measure import percentile, say
from harness.running_platform import Bench

from dashboard.readers import CATCH_UP_SECONDS, reading

_FROZEN_SHARE = 0.25
_QUIET_SECONDS, _BUSY_SECONDS = 5.0, 20.0
_EVENTS_A_SECOND = 20.0
_ASKS_A_SECOND = 20.0
_BURST_SECONDS = 60.0


def measure_stream(bench: Bench, readers: int) -> dict[str, Any]:
    frozen = int(readers * _FROZEN_SHARE)
    process = psutil.Process(bench.pid)
    before = _phase(bench, _QUIET_SECONDS)
    memory_before = process.memory_info().rss
    start = _last_event(bench)
    with reading(bench, readers - frozen, frozen, start) as pipe:
        say(f"  {readers} readers, {frozen} of them frozen; quiet for {_QUIET_SECONDS:.0f} s")
        quiet = _phase(bench, _QUIET_SECONDS)
        say(f"  an event every {1000 / _EVENTS_A_SECOND:.0f} ms for {_BUSY_SECONDS:.0f} s")
        with _emitting(bench) as emitted:
            busy = _phase(bench, _BUSY_SECONDS)
        memory_during = process.memory_info().rss
        last = _last_event(bench)
        pipe.send(last)
        if not pipe.poll(CATCH_UP_SECONDS + 60):
            raise RuntimeError("the readers' process does not answer")
        heard = pipe.recv()
    time.sleep(2)
    after = process.memory_info().rss
    burst = asyncio.run(_burst(bench, readers))
    say(f"  {readers} at once: {burst}")
    return {
        "readers": readers,
        "frozen": frozen,
        "p99_ms": percentile(busy.times, 0.99),
        # What readers hold for good; a look for news holds one for a moment.
        "db_connections": round(max(0.0, statistics.median(quiet.held) - statistics.median(before.held))),
        "rss_growth_mb": round((memory_during - memory_before) / 2**20, 1),
        "exact": heard["exact"] and heard["reconnected_exact"],
        "events": last - start,
        "events_per_second": round(emitted.count / emitted.seconds, 1),
        "p50_ms": percentile(busy.times, 0.50),
        "p99_ms_before": percentile(before.times, 0.99),
        "p99_ms_quiet": percentile(quiet.times, 0.99),
        "requests": len(busy.times),
        "failed_requests": busy.failed,
        "open_connections": {"before": max(before.open), "quiet": max(quiet.open), "busy": max(busy.open)},
        "rss_mb": {
            "before": round(memory_before / 2**20, 1),
            "during": round(memory_during / 2**20, 1),
            "after": round(after / 2**20, 1),
        },
        "burst": burst,
        "delivery_p50_ms": heard["delivery_p50_ms"],
        "delivery_p99_ms": heard["delivery_p99_ms"],
        "wrong_readers": heard["wrong"],
    }


# -- what another client notices ------------------------------------------------------------------------------------


@dataclass
class _Phase:
    """`times` of GET requests in ms. Of the API's database connections at each moment that was looked at: how many
    were `open`, and how many `held` (at work, or idle in a transaction)."""

    times: list[float] = field(default_factory=list)
    failed: int = 0
    open: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)


def _phase(bench: Bench, seconds: float) -> _Phase:
    phase = _Phase()
    asks = (("runs", {"limit": 50}), ("pipelines", {"limit": 20}), ("audit", {"limit": 50}))
    ends = time.monotonic() + seconds
    with bench.client() as client, bench.connect(autocommit=True) as connection:
        number = 0
        while time.monotonic() < ends or number == 0:
            path, params = asks[number % len(asks)]
            began = time.perf_counter()
            answer = client.get(path, params=params)
            took = time.perf_counter() - began
            phase.times.append(took * 1000)
            phase.failed += answer.status_code != 200
            # Between the requests of this client, so that what is held is not held by them.
            row = connection.execute(
                """SELECT count(*), count(*) FILTER (WHERE state <> 'idle') FROM pg_stat_activity
                   WHERE datname = current_database() AND backend_type = 'client backend'
                     AND application_name <> 'bench-web'"""
            ).fetchone()
            assert row is not None
            phase.open.append(row[0])
            phase.held.append(row[1])
            number += 1
            time.sleep(max(0.0, 1 / _ASKS_A_SECOND - took))
    return phase


@dataclass
class _Emitted:
    count: int = 0
    seconds: float = 0.0


@contextmanager
def _emitting(bench: Bench) -> Iterator[_Emitted]:
    """Moves a waiting run up and down through the API, at a steady rate: each move is one event."""
    with bench.connect(autocommit=True) as connection:
        run = connection.execute("SELECT id FROM runs WHERE state = 'queued' ORDER BY id LIMIT 1").fetchone()
    assert run is not None
    stopping = threading.Event()
    emitted = _Emitted()

    def work() -> None:
        began, sent = time.monotonic(), 0
        with bench.client() as client:
            while not stopping.is_set():
                answer = client.patch(f"runs/{run[0]}", json={"priority": sent % 5})
                emitted.count += answer.status_code == 200
                sent += 1
                due = began + sent / _EVENTS_A_SECOND
                stopping.wait(max(0.0, due - time.monotonic()))
        emitted.seconds = time.monotonic() - began

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield emitted
    finally:
        stopping.set()
        thread.join()


def _last_event(bench: Bench) -> int:
    with bench.connect(autocommit=True) as connection:
        row = connection.execute("SELECT max(last_id) FROM event_streams").fetchone()
    return int(row[0]) if row and row[0] else 0


async def _burst(bench: Bench, requests: int) -> dict[str, Any]:
    """Sends as many requests in one moment, each over a connection of its own, as after a restart when all readers come
    back: how many are answered at all, and how long the last of them takes."""
    times: list[float] = []
    headers = {"Authorization": f"Bearer {bench.token}"}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(headers=headers, timeout=_BURST_SECONDS, limits=limits) as client:
        began = time.monotonic()

        async def ask() -> None:
            with suppress(httpx.TransportError):
                answer = await client.get(f"{bench.url}/api/v1/projects/default/runs", params={"limit": 5})
                if answer.status_code == 200:
                    times.append(time.monotonic() - began)

        await asyncio.gather(*(ask() for _ in range(requests)))
    last = round(max(times), 2) if times else None
    return {"requests": requests, "answered": len(times), "seconds": last}
