"""Two nodes with folders of their own train as one worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fault_stack import SFT, Stack, Worker

from steerboard.accounts.tables import Project
from steerboard.platform.settings import Settings
from steerboard_workers.supervisor.device_group import DeviceGroup
from support.patience import PATIENCE, wait_until


def rendezvous() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


class Nodes:
    """Starts nodes of one worker; node 1 has a home of its own."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self._address = rendezvous()

    def start(self, node: int, **environment: str) -> Worker:
        options = ["--nodes", "2", "--node", str(node), "--rendezvous", self._address]
        store = self._stack.environment["STEERBOARD_ARTIFACT_URL"]
        other: dict[str, Any] = {"STEERBOARD_HOME": str(self._folder), "STEERBOARD_ARTIFACT_URL": store} if node else {}
        return self._stack.start_worker(f"node-{node}", options=options, **other, **environment)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero3"])
def test_two_nodes_train_as_one_process_does(stack: Stack, tmp_path: Path, strategy: str) -> None:
    expected = stack.undisturbed(SFT)
    nodes = Nodes(stack, tmp_path / "other")
    nodes.start(1)
    nodes.start(0)
    run_id = stack.create("sft", SFT | {"strategy": strategy})
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 1), run.reason
    assert stack.result(run_id).losses == {k: pytest.approx(v, rel=1e-4) for k, v in expected.losses.items()}
    # The first node alone has written anything that counts.
    assert not list((tmp_path / "other").rglob("outputs"))


@pytest.mark.long
@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_node_costs_an_attempt_and_the_next_one_resumes(stack: Stack, tmp_path: Path, lost: int) -> None:
    expected = stack.undisturbed(SFT)
    nodes = Nodes(stack, tmp_path / "other")
    both = [nodes.start(0), nodes.start(1)]
    run_id = stack.create("sft", SFT | {"strategy": "zero3"})
    stack.wait_for_step(run_id, 9)
    both[lost].signal(signal.SIGKILL)
    nodes.start(lost)
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert any("resumed from step" in line for line in stack.log_lines(run_id))
    assert stack.result(run_id).losses == {k: pytest.approx(v, rel=1e-4) for k, v in expected.losses.items()}


@pytest.mark.long
def test_a_node_ends_its_part_when_the_first_one_falls_silent(stack: Stack, tmp_path: Path) -> None:
    """No one else is there who would notice that the lease is over, and no connection breaks."""
    nodes = Nodes(stack, tmp_path / "other")
    first, second = (nodes.start(node, STEERBOARD_LEASE_SECONDS="4") for node in (0, 1))
    run_id = stack.create("sft", SFT | {"epochs": 100})
    stack.wait_for_step(run_id, 9)
    assert stack.stage_pids(run_id, node=1)
    frozen = [first.process.pid, *stack.stage_pids(run_id)]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        stack.wait(lambda: not stack.stage_pids(run_id, node=1), 20, "the second node's processes work on alone")
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGKILL)
    assert second.process.poll() is None


@pytest.mark.long
def test_a_further_node_says_that_it_lives_and_leaves_when_asked(
    settings: Settings, project: Project, tmp_path: Path
) -> None:
    alive = tmp_path / "alive"
    environment = {
        "STEERBOARD_HOME": str(tmp_path),
        "STEERBOARD_DATABASE_URL": settings.database_url,
        "STEERBOARD_REDIS_URL": settings.redis_url,
        "STEERBOARD_ALIVE_FILE": str(alive),
        "STEERBOARD_HEARTBEAT_SECONDS": "0.1",
    }
    options = ["--nodes", "2", "--node", "1", "--rendezvous", rendezvous()]
    node = subprocess.Popen(
        [sys.executable, "-m", "steerboard_workers.worker", *options], env={**os.environ, **environment}
    )
    try:
        for _ in range(2):  # not only at its start
            wait_until(alive.exists, process=node)
            alive.unlink()
        node.send_signal(signal.SIGTERM)
        assert node.wait(timeout=PATIENCE) == 0
    finally:
        node.kill()
        node.wait()


@pytest.mark.parametrize(
    ("nodes", "node", "address", "wrong"),
    [
        (2, 2, "h:1", "counted from 0"),
        (0, 0, "", "counted from 0"),
        (2, 0, "", "rendezvous"),
        (2, 1, "h:x", "rendezvous"),
    ],
)
def test_nodes_that_cannot_meet_are_refused(nodes: int, node: int, address: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        DeviceGroup([], nodes, node, address)
