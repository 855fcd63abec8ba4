"""Two nodes with folders of their own train as one worker."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from fault_stack import SFT, Result, Stack, Worker

from steerboard_workers.supervisor.device_group import DeviceGroup


def losses(result: Result) -> dict[int, float]:
    return {step: value for (name, step), value in result.metrics.items() if name == "loss"}


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

    def start(self, node: int) -> Worker:
        options = ["--nodes", "2", "--node", str(node), "--rendezvous", self._address]
        store = self._stack.environment["STEERBOARD_ARTIFACT_URL"]
        other: dict[str, Any] = {"STEERBOARD_HOME": str(self._folder), "STEERBOARD_ARTIFACT_URL": store} if node else {}
        return self._stack.start_worker(f"node-{node}", options=options, **other)


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
    assert losses(stack.result(run_id)) == {k: pytest.approx(v, rel=1e-4) for k, v in losses(expected).items()}
    # The first node alone has written anything that counts.
    assert not list((tmp_path / "other").rglob("outputs"))


@pytest.mark.long
def test_a_lost_node_costs_an_attempt_and_the_next_one_resumes(stack: Stack, tmp_path: Path) -> None:
    expected = stack.undisturbed(SFT)
    nodes = Nodes(stack, tmp_path / "other")
    nodes.start(0)
    second = nodes.start(1)
    run_id = stack.create("sft", SFT | {"strategy": "zero3"})
    stack.wait_for_step(run_id, 9)
    second.signal(signal.SIGKILL)
    nodes.start(1)
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert any("resumed from step" in line for line in stack.log_lines(run_id))
    assert losses(stack.result(run_id)) == {k: pytest.approx(v, rel=1e-4) for k, v in losses(expected).items()}


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
