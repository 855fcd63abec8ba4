"""A judge in a worker's process, which shows its key to no one."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from judge_world import PROJECT, SECRET, JudgeWorld, completion
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer
from steerboard.platform.database import transaction
from steerboard.runs.tables import Run
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.worker import Worker
from support.patience import PATIENCE, wait_until
from support.servers.other_server import Answer, Seen


@pytest.mark.long
def test_a_worker_runs_a_judge_in_a_process_that_shows_its_key_to_nobody(world: JudgeWorld, tmp_path: Path) -> None:
    world.evaluation(prompts=2)
    judge = world.judge("single", name="one")
    shown: list[bytes] = []

    def look_around(_: Seen) -> Answer:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    variables = (entry / "environ").read_bytes()
                    if judge["run"]["id"].encode() in variables:
                        shown.extend([variables, (entry / "cmdline").read_bytes()])
                except OSError:
                    continue
        return completion("Rating: [[3]]")

    world.server.answer = look_around
    worker = Worker(world.settings, pool="default", group=DeviceGroup(["0"]), name="w")
    worker.drain_deviceless()
    document = world.look("one")
    assert (document["state"], document["ok"], document["requests"]) == ("succeeded", 4, 4), document["run"]
    run = world.run(judge["run"]["id"])
    assert (run.device_seconds, run.failed_device_seconds) == (0.0, 0.0)
    assert run.progress is not None
    assert (run.progress["done"], run.progress["total"], run.progress["unit"]) == (4, 4, "requests")
    assert len(shown) >= 4
    everything = b"".join(shown) + json.dumps(document).encode() + "\n".join(world.log_of(judge["run"]["id"])).encode()
    everything += b"".join(path.read_bytes() for path in world.settings.home.rglob("*") if path.is_file())
    everything += json.dumps(world.verdicts("one")).encode()
    assert b"steerboard.evaluation.judges.process" in everything
    assert SECRET.encode() not in everything
    with transaction(world.sessions) as session:
        assert_nowhere(session, SECRET)


def test_a_judge_waits_neither_for_the_devices_nor_for_another_endpoint_that_hangs(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    body = {"name": "hanging", "base_url": f"{world.server.url}/v1", "model": "hangs", "api_key": SECRET}
    assert world.client.post(f"{PROJECT}/endpoints", json=body).status_code == 201
    released = threading.Event()

    def answer(seen: Seen) -> Answer:
        if seen.json["model"] == "hangs":
            released.wait(PATIENCE)
        return completion("[[7]]")

    world.server.answer = answer
    asked = {"style": "single", "name": "first", "endpoint": "hanging"}
    assert world.client.post(f"{PROJECT}/evaluations/e/judges", json=asked).status_code == 201
    world.judge("single", name="second")
    worker = Worker(world.settings, pool="default", group=DeviceGroup(["0"]), name="w")
    # The lane of the devices is free, and takes neither.
    worker.drain()
    assert {world.look(name)["state"] for name in ("first", "second")} == {"queued"}
    worker.start()
    try:
        ended(world, "second")
        assert world.look("first")["state"] == "running"
        released.set()
        ended(world, "first")
    finally:
        released.set()
        worker.close()


def ended(world: JudgeWorld, name: str) -> None:
    def has_succeeded() -> bool:
        judge = world.look(name)
        assert judge["state"] in ("queued", "running", "succeeded"), judge["run"]
        return judge["state"] == "succeeded"

    wait_until(has_succeeded, pause=0.1)


def assert_nowhere(session: Session, secret: str) -> None:
    for answer in session.scalars(select(JudgeAnswer)):
        assert secret not in answer.content
    for judge in session.scalars(select(Judge)):
        assert secret not in json.dumps(judge.settings)
    for run in session.scalars(select(Run)):
        assert secret not in json.dumps([run.config, run.progress, run.summary, run.error])
