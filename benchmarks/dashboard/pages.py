"""How long the dashboard's pages take to show their content in a real browser."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from harness.measure import Times, figures, say
from harness.running_platform import Bench

from dashboard.browser import chromium
from dashboard.fill import METRICS, SEED_DATASET
from dashboard.requests import charted_runs
from dashboard.samples import DATASET, vocabulary

BAR_MS = 1000.0
_QUIET_MS = 400  # so long without anything that loads, and the content is there
_LONGEST_MS = 30_000
# Notes the last frame in which something was still awaited, in milliseconds since the navigation began.
_WATCH = """
    const waits = '[aria-label="Loading"], [aria-busy="true"], .mantine-Skeleton-root';
    window.lastAwaited = 0;
    const look = () => {
        const there = window.awaited && document.querySelector(window.awaited);
        if (!there || document.querySelector(waits)) window.lastAwaited = performance.now();
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
"""
_ROWS, _CHART, _SAMPLES = "main tbody tr td", "main canvas", "main a.rows-link"


@dataclass(frozen=True)
class Page:
    """`content` is a selector of what the page is opened for."""

    name: str
    path: str
    content: str


def pages(bench: Bench) -> list[Page]:
    long, *others = charted_runs(bench)
    with bench.connect(autocommit=True) as connection:
        pipeline = connection.execute("SELECT name FROM pipelines ORDER BY id DESC LIMIT 1 OFFSET 9").fetchone()
        model = connection.execute("SELECT id FROM models ORDER BY id DESC LIMIT 1").fetchone()
    assert pipeline is not None
    assert model is not None
    words = vocabulary()
    large = f"datasets/{DATASET}"
    compared = {"runs": json.dumps(others[:4]), "metric": json.dumps(METRICS[:2])}
    return [
        Page("home", "", "main h2"),
        Page("runs", "runs", _ROWS),
        Page("runs_filtered", _with("runs", filter="loss < 1.1 tag:keep"), _ROWS),
        Page("runs_sorted", _with("runs", sort="-loss", column=json.dumps(["loss", "lr"])), _ROWS),
        Page("run", f"runs/{others[0]}", _CHART),
        Page("run_of_most_points", f"runs/{long}", _CHART),
        Page("compare", _with("compare", **compared), _CHART),
        Page("pipelines", "pipelines", _ROWS),
        Page("pipeline", f"pipelines/{pipeline[0]}", "main h1"),
        Page("queue", "queue", _ROWS),
        Page("datasets", "datasets", _ROWS),
        Page("dataset", large, _SAMPLES),
        Page("dataset_found_words", _with(large, q=words[150]), _SAMPLES),
        Page("dataset_found_rare", _with(large, q=words[-8]), _SAMPLES),
        Page("dataset_by_reward", _with(large, min=2.0, max=2.1), _SAMPLES),
        Page("dataset_statistics", _with(large, view="statistics"), "main h1"),
        Page("dataset_small", f"datasets/{SEED_DATASET}", _SAMPLES),
        Page("models", "models", _ROWS),
        Page("model", f"models/{model[0]}", "main h1"),
        Page("evaluations", "evaluations", "main h1"),
        Page("launch", "launch", "main h1"),
        Page("launch_run", "launch/dpo", "main input"),
        Page("audit", "settings/audit", _ROWS),
    ]


def _with(path: str, **search: Any) -> str:
    return f"{path}?{urlencode(search)}"


def measure_pages(bench: Bench, state: Any, times: int) -> dict[str, Any]:
    """{p50_ms, p95_ms, missed, pages}: each page `times` times in random order, after once that does not count."""
    asked = pages(bench)
    by_page = {page.name: Times() for page in asked}
    order = [page for page in asked for _ in range(times)]
    random.Random(0).shuffle(order)
    with chromium() as browser:
        context = browser.new_context(storage_state=state, viewport={"width": 1440, "height": 900})
        for number, page in enumerate([*asked, *order]):
            own = by_page[page.name]
            if own.failure is None:
                _open(context, f"{bench.url}/p/default/{page.path}", page, own, counts=number >= len(asked))
    document = _document(by_page)
    say(f"pages: p50 {document['p50_ms']} ms, p95 {document['p95_ms']} ms; missed: {document['missed'] or 'none'}")
    for name, summary in document["pages"].items():
        say(f"  {name:<28} {summary.get('p50_ms')!s:>9} {summary.get('p95_ms')!s:>9}  first {summary.get('first_ms')}")
    return document


def _open(context: Any, url: str, page: Page, times: Times, *, counts: bool) -> None:
    """A full load in a window of its own; after the first, the scripts come from the browser's cache."""
    from playwright.sync_api import Error

    window = context.new_page()
    window.add_init_script(f"window.awaited = {json.dumps(page.content)};{_WATCH}")
    try:
        window.goto(url, wait_until="commit")
        awaited = now = 0.0
        # Asked again and again: the dashboard's content policy forbids the functions that Playwright itself waits for.
        while now - awaited < _QUIET_MS:
            window.wait_for_timeout(50)
            awaited, now = window.evaluate("[window.lastAwaited, performance.now()]")
            if now > _LONGEST_MS:
                raise TimeoutError(f"no content after {_LONGEST_MS} ms")
        if counts:
            times.counted.append(awaited)
        else:
            times.first = awaited
    except (Error, TimeoutError) as error:
        times.failure = str(error).splitlines()[0]
        say(f"  {page.name} failed: {times.failure}")
    finally:
        window.close()


def _document(by_page: dict[str, Times]) -> dict[str, Any]:
    summaries = {
        name: {"failed": times.failure} if times.failure else {**figures(times.counted), "first_ms": round(times.first)}
        for name, times in by_page.items()
    }
    missed = [name for name, summary in summaries.items() if "failed" in summary or summary["p95_ms"] > BAR_MS]
    return {**figures(_all(list(by_page.values()))), "missed": missed, "pages": summaries}


def _all(times: Sequence[Times]) -> list[float]:
    return [milliseconds for own in times for milliseconds in own.counted]
