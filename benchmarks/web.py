"""How quickly the dashboard's API answers when there is much in it, as one JSON document: `make bench-web`.

Starts `steerboard up` with servers of its own (those of STEERBOARD_DATABASE_URL and STEERBOARD_REDIS_URL where they are
set), fills it with runs, metric points and labelled samples, and measures over HTTP what the pages ask: `lists` and
`charts`, each request many times in random order over one connection; the `pages` in a real browser until their
content is there, and what the first load weighs; then an MLflow server on the same Postgres with as many runs and
points; and the live `stream` under many readers. Times are milliseconds. The bars on two cores: every list and chart
p50 100 ms and p95 300 ms, every page p95 1,000 ms; `missed` names those above.
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dashboard.browser import bundle, sign_in
from dashboard.fill import Amounts, fill, sizes
from dashboard.mlflow import measure_mlflow
from dashboard.pages import measure_pages
from dashboard.requests import chart_asks, list_asks
from dashboard.stream import measure_stream
from harness.machine import machine
from harness.measure import Ask, group, measure, say, tell
from harness.running_platform import Bench, platform

STEPS = ("bundle", "lists", "charts", "pages", "mlflow", "stream")


def main() -> None:
    given = _arguments()
    if given.home is not None:
        print(json.dumps(run(given.home, given), indent=2))
        return
    with tempfile.TemporaryDirectory(prefix="bench-", dir=given.folder) as home:
        print(json.dumps(run(Path(home), given), indent=2))


def run(home: Path, given: argparse.Namespace) -> dict[str, Any]:
    document: dict[str, Any] = {"machine": machine()}
    with platform(home) as bench:
        seconds: dict[str, Any] = {"fill": _filled(bench, Amounts(given.runs, given.samples, given.points))}
        document["sizes"] = sizes(bench)
        signed_in = functools.cache(lambda: sign_in(bench))
        steps: dict[str, Callable[[], dict[str, Any]]] = {
            "bundle": lambda: bundle(bench, signed_in()),
            "lists": lambda: _group(bench, "lists", list_asks(bench), given.requests),
            "charts": lambda: _group(bench, "charts", chart_asks(bench), given.requests),
            "pages": lambda: measure_pages(bench, signed_in(), given.requests),
            "mlflow": lambda: measure_mlflow(bench, given.requests),
            "stream": lambda: measure_stream(bench, given.readers),
        }
        for name in given.leave_out:
            del steps[name]
            document |= {name: None, f"{name}_missing": "left out by --leave-out"}
        for name, step in steps.items():
            say(name)
            began = time.monotonic()
            try:
                document[name] = step()
            except Exception as error:  # the others are still worth their minutes
                traceback.print_exc()
                document |= {name: None, f"{name}_missing": str(error)[-500:]}
            seconds[name] = round(time.monotonic() - began, 1)
        document["seconds"] = seconds
    return document


def _filled(bench: Bench, amounts: Amounts) -> dict[str, float] | None:
    """The seconds of each step of filling; None for a home that was filled before."""
    done = bench.home / "filled.json"
    wanted = asdict(amounts)
    if done.is_file():
        if json.loads(done.read_text()) != wanted:
            raise SystemExit(f"{bench.home} was filled with other amounts: {done.read_text()}; give another --home")
        return None
    say(f"filling {bench.url}")
    took = fill(bench, amounts)
    done.write_text(json.dumps(wanted))
    return took


def _group(bench: Bench, name: str, asks: list[Ask], times: int) -> dict[str, Any]:
    with bench.client() as client:
        document = group(measure(asks, times, lambda ask, rng: ask.send(client, rng)))
    tell(name, document)
    return document


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--points", type=int, default=2_000_000, help="metric points")
    parser.add_argument("--requests", type=int, default=30, help="how often each request is measured")
    parser.add_argument("--readers", type=int, default=200, help="of the live stream; a quarter of them never reads")
    parser.add_argument(
        "--leave-out", nargs="*", choices=("bundle", "lists", "charts", "pages", "mlflow", "stream"), default=()
    )
    parser.add_argument("--home", type=Path, help="kept and measured again without filling; by default a temporary one")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made; a full run needs about 8 GB")
    return parser.parse_args()


if __name__ == "__main__":
    main()
