"""Labelling with more workers, and generation by three engines, as one JSON document: `make bench-scale`.

Starts `steerboard up` with servers of its own. `labelling`: a score run over `--rows` answers of some 100 tokens, cut
into as many shards as there are workers (1, 2 and 4, each on one thread), timed from the call that starts it to its
success, so the start of its stage processes counts. `engines`: tokens/s of the transformers engine, of vLLM inside a
stage, and of vLLM's server over HTTP (as a generate run asks it), each on all cores, loading not counted. Each is
measured `--rounds` times, the second time in the opposite order, after one labelling that is not counted; the medians
are given with all that was measured. Needs `make setup-vllm`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from harness.machine import machine
from harness.measure import say
from harness.running_platform import Bench, platform
from scaling.models import BATCH, NEW_TOKENS, PROMPTS, WINDOW, write_models

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.evaluation.entrants.endpoint_answers import Respondent, Target
from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.processes import vllm
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard_contracts.decoding import Decoding

HERE = Path(__file__).parent
WORKERS = (1, 2, 4)
ENGINES = ("transformers", "vllm", "vllm_server")


def main() -> None:
    given = _arguments()
    # What was started ends also when this is asked to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Libraries print what they like; the document alone goes to standard output.
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        with tempfile.TemporaryDirectory(prefix="bench-", dir=given.folder) as folder:
            print(json.dumps(run(Path(folder), given), indent=2), file=out)


def run(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    python = vllm.require_python(Settings())
    models = folder / "models"
    write_models(models)
    document: dict[str, Any] = {
        "machine": {**machine(), "vllm": vllm.version_of(python)},
        "rows": given.rows,
        "prompts": given.prompts,
        "new_tokens": NEW_TOKENS,
    }
    document["labelling"] = _labelling(folder, models, given)
    document["engines"] = _engines(models, python, given.rounds, given.prompts)
    document["machine"]["load_after"] = machine()["load"]
    return document


# -- labelling --------------------------------------------------------------------------------------------------------


def _labelling(folder: Path, models: Path, given: argparse.Namespace) -> dict[str, Any]:
    seconds: dict[int, list[float]] = {count: [] for count in WORKERS}
    with platform(folder / "home") as bench:
        _fill(bench, models, given.rows)
        with bench.client() as client:
            with _workers(bench, 1):
                _label(client, 1)
            for turn in range(given.rounds):
                for count in WORKERS if turn % 2 == 0 else reversed(WORKERS):
                    with _workers(bench, count):
                        seconds[count].append(_label(client, count))
                    say(f"{count} workers: {given.rows / seconds[count][-1]:.0f} rows/s")
    speeds = {count: given.rows / statistics.median(times) for count, times in seconds.items()}
    return {
        str(count): {
            "rows_per_second": round(speed, 1),
            "over_one_worker": round(speed / speeds[1], 2),
            "seconds": [round(value, 2) for value in seconds[count]],
        }
        for count, speed in speeds.items()
    }


def _fill(bench: Bench, models: Path, rows: int) -> None:
    rng = random.Random(0)
    words = sorted({word for prompt in PROMPTS for word in prompt.split()})
    path = bench.home / "rows.jsonl"
    with path.open("w") as file:
        for row in range(rows):
            answer = " ".join(rng.choices(words, k=rng.randint(20, 80)))
            file.write(json.dumps({"prompt": f"{row} {rng.choice(PROMPTS)}", "response": answer}) + "\n")
    engine = make_engine(bench.database_url.replace("postgresql://", "postgresql+psycopg://", 1))
    with transaction(make_sessions(engine)) as session:
        project = session.query(Project).filter_by(name="default").one()
        import_file(session, project, path=path, name="rows", kind="instructions")
        register_model(
            session,
            ArtifactStore(f"file://{bench.home / 'artifacts'}"),
            project,
            name="reward",
            folder=models / "reward",
            role="reward",
            method=None,
            parent_id=None,
            run_id=None,
        )
    engine.dispose()


@contextmanager
def _workers(bench: Bench, count: int) -> Iterator[None]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")},
        "STEERBOARD_HOME": str(bench.home),
        "STEERBOARD_DATABASE_URL": bench.database_url,
        "STEERBOARD_REDIS_URL": bench.redis_url,
        "STEERBOARD_STAGE_THREADS": "1",
        "STEERBOARD_POLL_SECONDS": "0.5",
    }
    command = [sys.executable, "-m", "steerboard_workers.worker", "--name"]
    names = {f"worker-{time.time_ns()}-{i}" for i in range(count)}
    with (bench.home / "workers.log").open("ab") as log:
        started = [subprocess.Popen([*command, name], env=environment, stdout=log, stderr=log) for name in names]
    try:
        # All of them must be there before the clock starts.
        with bench.client() as client:
            _until(
                lambda: names <= {worker["name"] for worker in client.get(f"{bench.url}/api/v1/system/workers").json()},
                lambda: f"the workers are not all there: see {bench.home / 'workers.log'}",
            )
        yield
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.wait(60)


def _label(client: httpx.Client, shards: int) -> float:
    """Seconds of a score run over all rows."""
    config = {"run": "score", "shards": shards}
    body = {"config": config, "inputs": {"data": "rows", "reward": "reward"}, "reuse": False}
    began = time.perf_counter()
    answer = client.post("runs", json=body)
    assert answer.status_code == 201, answer.text
    while (run := client.get(f"runs/{answer.json()['id']}").json())["state"] not in ("succeeded", "failed"):
        time.sleep(0.1)
    assert run["state"] == "succeeded", run["reason"]
    return time.perf_counter() - began


# -- engines ----------------------------------------------------------------------------------------------------------


def _engines(models: Path, python: Path, rounds: int, prompts: int) -> dict[str, Any]:
    by_engine: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    for turn in range(rounds):
        for engine in ENGINES if turn % 2 == 0 else reversed(ENGINES):
            speeds = (
                _served_speed(models, python, prompts)
                if engine == "vllm_server"
                else _stage_speed(engine, models, python, prompts)
            )
            by_engine[engine].append(speeds)
            say(f"{engine}: {', '.join(f'{name} {speed:.0f} tokens/s' for name, speed in speeds.items())}")
    return {
        engine: {
            name: {
                "tokens_per_second": round(statistics.median(speed[name] for speed in measured), 1),
                "all": [round(speed[name], 1) for speed in measured],
            }
            for name in ("greedy", "sampled")
        }
        for engine, measured in by_engine.items()
    }


def _stage_speed(engine: str, models: Path, python: Path, prompts: int) -> dict[str, float]:
    by_vllm = engine == "vllm"
    subprocess.run(
        [python if by_vllm else sys.executable, HERE / "scaling" / "engine_speed.py", engine, models, str(prompts)],
        env={**os.environ, **(vllm.variables(python, models) if by_vllm else {})},
        check=True,
        stdout=sys.stderr,
        stderr=(models / f"{engine}.log").open("ab"),
    )
    speeds: dict[str, float] = json.loads((models / f"{engine}.json").read_text())
    return speeds


def _served_speed(models: Path, python: Path, prompts: int) -> dict[str, float]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", models / "policy", "--port", str(port)]
    command += ["--served-model-name", "policy", "--dtype", "float32", "--max-model-len", str(WINDOW)]
    command += ["--max-num-seqs", str(BATCH)]
    cpu = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_NUM_OF_RESERVED_CPU": "0", "HF_HUB_OFFLINE": "1"}
    with (models / "server.log").open("ab") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **cpu}, stdout=log, stderr=log, start_new_session=True, cwd=models
        )
    try:
        _until(
            lambda: server.poll() is not None or _healthy(port),
            lambda: "vLLM's server does not answer:\n" + (models / "server.log").read_text()[-2000:],
        )
        assert server.poll() is None, (models / "server.log").read_text()[-2000:]
        os.environ["STEERBOARD_ALLOWED_PRIVATE"] = "127.0.0.1"
        get_settings.cache_clear()
        target = Target(f"http://127.0.0.1:{port}/v1", "policy", None, None)
        _ask(target, PROMPTS[:BATCH], 0.0)
        return {
            name: _ask(target, PROMPTS[:prompts], temperature)
            for name, temperature in (("greedy", 0.0), ("sampled", 1.0))
        }
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _ask(target: Target, prompts: list[str], temperature: float) -> float:
    """Tokens/s of a server that is asked for all prompts as a generate run does."""
    respondent = Respondent(target, StageEventWriter(sys.stderr))
    decoding = Decoding(temperature=temperature, max_new_tokens=NEW_TOKENS)
    lock, tokens = threading.Lock(), [0]

    def job(row: int, prompt: str) -> None:
        answer = respondent.ask(f"row {row}", [{"role": "user", "content": prompt}], decoding, row)
        with lock:
            tokens[0] += answer["tokens"]

    began = time.perf_counter()
    respondent.all(
        [lambda row=row, prompt=prompt: job(row, prompt) for row, prompt in enumerate(prompts)], BATCH, lambda: None
    )
    return tokens[0] / (time.perf_counter() - began)


def _until(there: Callable[[], bool], missing: Callable[[], str], seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        if time.monotonic() > deadline:
            raise SystemExit(missing())
        time.sleep(0.2)


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=5, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="Where the temporary folder is made.")
    return parser.parse_args()


if __name__ == "__main__":
    main()
