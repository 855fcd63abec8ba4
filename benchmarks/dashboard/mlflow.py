"""The same questions to an MLflow server on the same Postgres, with as many runs and metric points.

MLflow lives in a virtual environment of its own, made once. Its tables are its own; the rows are bulk SQL, copied from
ours: a run's kind, method and pipeline are tags, its config parameters. Both servers are asked in one random order, one
request at a time, so each is idle while the other answers.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg
from harness.measure import Ask, Times, figures, measure, say
from harness.running_platform import Bench

from dashboard.fill import METRICS
from dashboard.requests import charted_runs
from steerboard.platform.http.paging import encode_cursor

PACKAGES = ("mlflow==3.17.2", "psycopg2-binary==2.9.13")
_FOLDER = Path(__file__).resolve().parents[2] / ".bench" / "mlflow"
_START_SECONDS = 180.0
_POINTS = 400
_DATABASE = "bench_mlflow"
_STATUS = {"succeeded": "FINISHED", "failed": "FAILED", "cancelled": "KILLED", "running": "RUNNING"}
_BROWSER_CONNECTIONS = 6


def measure_mlflow(bench: Bench, times: int) -> dict[str, Any]:
    """`lists` and `charts` of MLflow, `ours` for the same questions, and how many times as long it takes."""
    program = _installed()
    with _database(bench) as url, _server(program, url.replace("://", "+psycopg2://", 1), bench.home) as address:
        with psycopg.connect(url) as mlflow, bench.connect() as ours:
            _fill(ours, mlflow)
        with psycopg.connect(url, autocommit=True) as mlflow:
            mlflow.execute("VACUUM (ANALYZE)")
            counted = mlflow.execute("SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM metrics)").fetchone()
            experiment = mlflow.execute("SELECT min(experiment_id) FROM experiments").fetchone()
        assert counted is not None
        assert experiment is not None
        say(f"  MLflow holds {counted[0]:,} runs and {counted[1]:,} metric points")
        measured = _measure(bench, address, str(experiment[0]), times)
    return {
        "packages": list(PACKAGES),
        "runs": counted[0],
        "metric_points": counted[1],
        "filled_by": "bulk SQL",
    } | measured


# -- the environment and the server -----------------------------------------------------------------------------------


def _installed() -> Path:
    """Raises `subprocess.CalledProcessError` where the packages cannot be had."""
    done = _FOLDER / "packages.txt"
    wanted = "\n".join(PACKAGES)
    if not done.is_file() or done.read_text() != wanted:
        say("  installing MLflow into an environment of its own; this happens once")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(_FOLDER)], check=True)
        pip = [str(_FOLDER / "bin" / "python"), "-m", "pip", "install", "-q", *PACKAGES]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        done.write_text(wanted)
    return _FOLDER / "bin" / "mlflow"


@contextmanager
def _database(bench: Bench) -> Iterator[str]:
    with bench.connect(autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {_DATABASE}")
        try:
            yield bench.beside(_DATABASE)
        finally:
            connection.execute(f"DROP DATABASE {_DATABASE} WITH (FORCE)")


@contextmanager
def _server(program: Path, url: str, home: Path) -> Iterator[str]:
    """Its address, once it answers and has made its tables. As it comes, but without its background jobs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(program), "server", "--backend-store-uri", url, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--artifacts-destination", str(home / "mlflow-artifacts")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    environment |= {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (home / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=home, env=environment, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(address):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"MLflow did not start: {(home / 'mlflow.log').read_text()[-1500:]}")
            time.sleep(0.5)
        yield address
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            time.sleep(3)
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.post(f"{address}/api/2.0/mlflow/experiments/search", json={"max_results": 1}).status_code == 200
    except httpx.TransportError:
        return False


# -- its rows ---------------------------------------------------------------------------------------------------------


def _fill(ours: psycopg.Connection, mlflow: psycopg.Connection) -> None:
    experiment = mlflow.execute("SELECT min(experiment_id) FROM experiments").fetchone()
    assert experiment is not None
    rows = ours.execute(
        """SELECT r.id, r.name, r.kind, r.method, r.state, r.config, r.created_by, r.created_at, r.ended_at, p.name
           FROM runs r LEFT JOIN pipelines p ON p.id = r.pipeline_id ORDER BY r.id"""
    ).fetchall()
    runs, tags, params = [], [], []
    for id_, name, kind, method, state, config, by, created, ended, pipeline in rows:
        run = id_.hex
        ms = int(created.timestamp() * 1000)
        end = int(ended.timestamp() * 1000) if ended else None
        status = _STATUS.get(state, "SCHEDULED")
        runs.append(
            (run, name, "LOCAL", "", "", by, status, ms, end, "active", f"mlflow-artifacts:/{run}", experiment[0])
        )
        named = {"mlflow.runName": name, "mlflow.user": by, "kind": kind, "method": method, "pipeline": pipeline}
        tags += [(key, value, run) for key, value in named.items() if value is not None]
        params += [(key, str(value), run) for key, value in config.items() if not isinstance(value, (dict, list))]
    columns = "run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time, end_time"
    _copy(mlflow, f"runs ({columns}, lifecycle_stage, artifact_uri, experiment_id)", runs)
    _copy(mlflow, "tags (key, value, run_uuid)", tags)
    _copy(mlflow, "params (key, value, run_uuid)", params)
    series = ours.execute("SELECT run_id, max(step) FROM metrics WHERE name = %s GROUP BY 1", (METRICS[0],)).fetchall()
    given = ([row[0].hex for row in series], [row[1] for row in series], list(METRICS))
    every = "FROM unnest(%s::text[], %s::int[]) run (id, steps) CROSS JOIN unnest(%s::text[]) name"
    mlflow.execute(
        f"""INSERT INTO metrics (key, value, timestamp, step, is_nan, run_uuid)
            SELECT name, 1 + 4 / (1 + step / 50.0) + random() / 10, 1700000000000 + step * 1000, step, false, run.id
            {every} CROSS JOIN generate_series(1, run.steps) step ORDER BY run.id, step, name""".encode(),
        given,
    )
    mlflow.execute(
        f"""INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid)
            SELECT name, 1.1, 1700000000000 + run.steps * 1000, run.steps, false, run.id {every}""".encode(),
        given,
    )


def _copy(connection: psycopg.Connection, into: str, rows: list[tuple[Any, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row(row)


# -- the questions ----------------------------------------------------------------------------------------------------


def _measure(bench: Bench, address: str, experiment: str, times: int) -> dict[str, Any]:
    runs = charted_runs(bench)
    with bench.client() as ours, httpx.Client(base_url=address, timeout=None) as mlflow:
        with ThreadPoolExecutor(_BROWSER_CONNECTIONS) as pool:
            middle = _deep_token(mlflow, experiment)
            asks = [*_our_asks(bench, runs), *_their_asks(runs, experiment, middle)]

            def send(ask: Ask, rng: random.Random) -> httpx.Response:
                if ask.name.startswith("ours/"):
                    return ask.send(ours, rng)
                if ask.name == "mlflow/chart_pages/all":
                    return _whole_page(pool, mlflow, rng.choice(runs))
                return ask.send(mlflow, rng)

            measured = measure(asks, times, send)
    own, other = _summary(measured, "ours/"), _summary(measured, "mlflow/")
    ratio = {
        group: round(other[group]["p50_ms"] / own[group]["p50_ms"], 2)
        for group in own
        if other[group]["p50_ms"] and own[group]["p50_ms"]
    }
    return {**other, "ours": own, "ratio_p50": ratio}


def _our_asks(bench: Bench, runs: list[str]) -> list[Ask]:
    with bench.connect(autocommit=True) as connection:
        row = connection.execute(
            "SELECT id FROM runs ORDER BY id DESC OFFSET (SELECT count(*) / 2 FROM runs) LIMIT 1"
        ).fetchone()
    assert row is not None
    page = {"limit": 50}
    charts = [f"runs/{run}/metrics" for run in runs]
    return [
        Ask("ours/lists/plain", ["runs"], [page]),
        Ask("ours/lists/state", ["runs"], [{**page, "state": "succeeded"}, {**page, "state": "failed"}]),
        Ask("ours/lists/kind", ["runs"], [{**page, "kind": "train"}, {**page, "kind": "evaluate"}]),
        Ask("ours/lists/deep", ["runs"], [{**page, "cursor": encode_cursor(row[0])}]),
        Ask("ours/charts/one_metric", charts, [{"name": name, "points": _POINTS} for name in METRICS]),
        Ask("ours/charts/longest", charts[:1], [{"name": name, "points": _POINTS} for name in METRICS]),
        Ask("ours/chart_pages/all", charts, [{"points": _POINTS}]),
    ]


def _their_asks(runs: list[str], experiment: str, token: str) -> list[Ask]:
    search = ["/ajax-api/2.0/mlflow/runs/search"]
    page = {"experiment_ids": [experiment], "max_results": 50}

    def filtered(*filters: str) -> list[dict[str, Any]]:
        return [{**page, "filter": filter_} for filter_ in filters]

    history = ["/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"]
    charts = [_interval(run, name) for run in runs for name in METRICS]
    states = ("attributes.status = 'FINISHED'", "attributes.status = 'FAILED'")
    return [
        Ask("mlflow/lists/plain", search, bodies=[page]),
        Ask("mlflow/lists/state", search, bodies=filtered(*states)),
        Ask("mlflow/lists/kind", search, bodies=filtered("tags.kind = 'train'", "tags.kind = 'evaluate'")),
        Ask("mlflow/lists/deep", search, bodies=[{**page, "page_token": token}]),
        Ask("mlflow/charts/one_metric", history, charts),
        Ask("mlflow/charts/longest", history, charts[: len(METRICS)]),
        Ask("mlflow/chart_pages/all", history),
    ]


def _interval(run: str, name: str) -> dict[str, Any]:
    return {"run_ids": run.replace("-", ""), "metric_key": name, "max_results": _POINTS}


def _whole_page(pool: ThreadPoolExecutor, client: httpx.Client, run: str) -> httpx.Response:
    """All metrics of one run, each of which is a request, over as many connections as a browser opens."""
    path = "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
    answers = list(pool.map(lambda name: client.get(path, params=_interval(run, name)), METRICS))
    return next((answer for answer in answers if answer.status_code != 200), answers[0])


def _deep_token(client: httpx.Client, experiment: str) -> str:
    """The token of a page in the middle of all runs."""
    query: dict[str, Any] = {"experiment_ids": [experiment], "max_results": 250}
    tokens: list[str] = []
    while True:
        answer = client.post("/ajax-api/2.0/mlflow/runs/search", json=query).raise_for_status().json()
        if not answer.get("next_page_token"):
            return tokens[len(tokens) // 2]
        tokens.append(answer["next_page_token"])
        query["page_token"] = tokens[-1]


def _summary(measured: dict[str, Times], side: str) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for group in ("lists", "charts", "chart_pages"):
        in_group = {name: times for name, times in measured.items() if name.startswith(f"{side}{group}/")}
        requests = {name.rpartition("/")[2]: times.summary() for name, times in in_group.items()}
        summary[group] = {
            **figures([seconds for times in in_group.values() for seconds in times.counted]),
            "requests": requests,
        }
    return summary
