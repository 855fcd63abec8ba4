"""`steerboard models serve`: vLLM's own server, as the platform's endpoint. It answers as our own engine does, streams,
is killed, and comes back."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from playground_world import WINDOW, PlaygroundWorld, working

from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.runs.state import claims
from steerboard.runs.state.sweeper import settle_all
from steerboard.runs.tables import Run
from steerboard_workers.stages.models.model_io import load_tokenizer
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.supervisor.execution import Supervisor
from support.models.vllm_engine import needs_vllm, write_adapted
from support.patience import PATIENCE, wait_until

LOCAL = {"allowed_private": "127.0.0.1"}
DECODING = {"max_new_tokens": 24}
Serve = Callable[..., "Served"]


class Served:
    """A `steerboard models serve` that has printed its URL."""

    def __init__(self, process: subprocess.Popen[str], url: str, tree: list[psutil.Process]) -> None:
        self.process, self.url, self.tree = process, url, tree

    @property
    def port(self) -> str:
        return re.findall(r":(\d+)/", self.url)[0]

    def kill_vllm(self) -> None:
        """kill -9 of vLLM's server, whatever else of it there is."""
        (server,) = [p for p in self.tree if p.cmdline()[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]]
        server.kill()


@pytest.fixture
def serve(world: PlaygroundWorld, tmp_path: Path) -> Iterator[Serve]:
    started: list[subprocess.Popen[str]] = []

    def begin(model: str, *options: str) -> Served:
        world.client.app.state.settings.allowed_private = "127.0.0.1"  # type: ignore[attr-defined]
        log = (tmp_path / f"serve-{len(started)}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, "-m", "steerboard.cli.main", "models", "serve", model, *options, "--", "--enforce-eager"],
            env={**os.environ, "STEERBOARD_URL": world.address, "STEERBOARD_TOKEN": world.token},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, Path(log.name).read_text()[-3000:]
        return Served(process, url, psutil.Process(process.pid).children(recursive=True))

    yield begin
    for process in started:
        process.kill()
        process.wait()


def start_run(world: PlaygroundWorld, model: str, **fields: Any) -> str:
    config = {"run": "generate", "split": "all", "decoding": DECODING, "batch_size": 2, **fields}
    body = {"config": config, "inputs": {"model": model, "data": "prompts"}}
    answer = world.client.post("/api/v1/projects/default/runs", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def work(world: PlaygroundWorld) -> Run:
    """Execute the next run as a worker does."""
    with transaction(world.sessions) as session:
        claim = claims.claim_next(session, pool="default", owner="w", worker="w1", devices=1, lease_seconds=300)
    assert claim is not None
    changed = world.settings.model_copy(update={"stage_threads": 1, "retry_seconds": 0.0, **LOCAL})
    Supervisor(world.sessions, world.store, changed, group=DeviceGroup(), stopping=threading.Event()).execute(claim)
    settle_all(world.sessions)
    with transaction(world.sessions) as session:
        return session.get_one(Run, claim.run_id)


def texts(world: PlaygroundWorld, run: Run) -> list[tuple[str, str]]:
    prefix = "/api/v1/projects/default"
    (output,) = world.client.get(f"{prefix}/runs/{run.id}").json()["outputs"]
    rows = world.client.get(f"{prefix}/datasets/{output['id']}/samples", params={"limit": 500}).json()["items"]
    return [(row["sample"]["prompt"][0]["content"], row["sample"]["response"]) for row in rows]


@needs_vllm
@pytest.mark.long
def test_a_served_model_streams_to_the_playground_what_the_local_one_says(
    world: PlaygroundWorld, serve: Serve, settings: Settings
) -> None:
    served = serve("dt", "--port", "0", "--endpoint", "served")
    prefix = "/api/v1/projects/default/endpoints"
    endpoint = world.client.get(prefix).json()[0]
    assert (endpoint["name"], endpoint["base_url"], endpoint["policy_model"]["name"]) == ("served", served.url, "dt")
    checked = world.client.post(f"{prefix}/served/check").json()
    assert (checked["ok"], checked["models"]) == (True, ["dt"])
    with working(settings.model_copy(update=LOCAL)):
        for score in (5.0, -5.0):
            columns = [{"endpoint": "served", "score": score}, {"model": "dt", "score": score}]
            made = world.compare(*[{**column, "decoding": DECODING} for column in columns])
            remote, local = world.finish(made)["columns"]
            assert remote["state"] == local["state"] == "succeeded"
            assert remote["text"] == local["text"]
            assert len(remote["text"]) > 12
            assert remote["tokens"] == 24
        # Long enough that its beginning is shown before its end is there.
        made = world.compare({"endpoint": "served", "score": 5.0, "decoding": {"max_new_tokens": 400}})
        pieces = [data["text"] for event, data in world.stream(made) if event == "answer" and data["text"]]
        assert len(pieces) > 2
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(40) == 0
    _, alive = psutil.wait_procs(served.tree, timeout=PATIENCE)
    assert alive == []


@needs_vllm
@pytest.mark.long
def test_a_server_with_guidance_streams_what_the_local_model_writes_guided(
    world: PlaygroundWorld, serve: Serve, settings: Settings
) -> None:
    serve("dt", "--port", "0", "--endpoint", "served", "--guidance")
    assert world.client.get("/api/v1/projects/default/endpoints").json()[0]["guides"] is True
    answers = {}
    with working(settings.model_copy(update=LOCAL)):
        for guidance in (0.0, 1.0, 8.0):
            decoding = {**DECODING, "guidance": guidance}
            columns = [{"endpoint": "served", "score": 5.0}, {"model": "dt", "score": 5.0}]
            made = world.compare(*[{**column, "decoding": decoding} for column in columns])
            remote, local = world.finish(made)["columns"]
            assert remote["state"] == local["state"] == "succeeded", remote
            assert remote["text"] == local["text"]
            answers[guidance] = local["text"]
    assert len(set(answers.values())) > 1, "guidance must change something"


@needs_vllm
@pytest.mark.long
def test_a_server_killed_in_the_middle_is_an_error_in_time_and_the_run_goes_on_when_it_is_back(
    world: PlaygroundWorld, serve: Serve
) -> None:
    world.dataset("prompts", 60)
    served = serve("sft", "--port", "0", "--endpoint", "served")
    run_id = start_run(world, "served")
    kept = world.settings.home / "work" / run_id / "checkpoints" / "a1-rows.jsonl"

    def kill() -> None:
        wait_until(lambda: kept.is_file() and kept.read_bytes().count(b"}\n") > 10)
        served.kill_vllm()

    killer = threading.Thread(target=kill)
    killer.start()
    began = time.monotonic()
    run = work(world)
    killer.join()
    assert (run.state, run.reason_code, run.attempt) == ("queued", "endpoint_gave_up", 1)
    assert time.monotonic() - began < 120
    # The command reports it, and leaves nothing behind.
    assert served.process.wait(60) == 1
    _, alive = psutil.wait_procs(served.tree, timeout=PATIENCE)
    assert alive == []
    serve("sft", "--port", served.port, "--endpoint", "served")
    run = work(world)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert run.summary is not None
    assert 10 < run.summary["resumed_rows"] < 60
    start_run(world, "sft")
    local = work(world)
    assert local.state == "succeeded", local.reason
    assert texts(world, run) == texts(world, local)


@needs_vllm
@pytest.mark.long
def test_an_adapter_is_served_over_its_base_and_answers_as_the_local_one(
    world: PlaygroundWorld, serve: Serve, settings: Settings, tmp_path: Path
) -> None:
    shutil.copytree(world.folders / "sft", tmp_path / "policy")
    common = {"parameters": 1, "max_length": WINDOW}
    write_adapted(tmp_path, load_tokenizer(tmp_path / "policy"), common)
    world.folders = tmp_path
    world.register("adapted", "adapted")
    serve("adapted", "--port", "0", "--endpoint", "served")
    checked = world.client.post("/api/v1/projects/default/endpoints/served/check").json()
    assert (checked["ok"], sorted(checked["models"])) == (True, ["adapted", "adapted-base"])
    with working(settings.model_copy(update=LOCAL)):
        columns = [{"endpoint": "served"}, {"model": "adapted"}, {"model": "sft"}]
        made = world.compare(*[{**column, "decoding": DECODING} for column in columns])
        remote, local, base = world.finish(made)["columns"]
    assert remote["state"] == "succeeded", remote
    assert remote["text"] == local["text"]
    assert remote["text"] != base["text"]
