"""Rollout engines and a reference on a node of their own: Ray over two nodes, each of which is lost in turn."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from fault_stack import Stack
from test_nodes import Nodes

pytestmark = [pytest.mark.long]
ONLINE: dict[str, Any] = {
    "run": "train",
    "method": "rloo",
    "kl_weight": 0.05,
    "rules": [{"kind": "regex", "pattern": "s"}],
    "batch": 6,
    "answers": 4,
    "max_new_tokens": 16,
    "epochs": 4,
    "lr": 1e-3,
    "max_steps": 30,
    "checkpoint_every": 2,
    "precision": "fp32",
}
PLACED = ONLINE | {"placement": {"rollout": 2, "reference": 1}}


def unit_pids(stack: Stack, run_id: Any, node: int) -> list[int]:
    """The ids of processes in which units work: not Ray's own, without which a node dies."""
    pids = stack.stage_pids(run_id, node)
    return [pid for pid in pids if command(pid).startswith(b"ray::RoleProcess")]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_node_that_trains_and_one_that_samples_make_the_same_model_as_one_process(
    stack: Stack, tmp_path: Path
) -> None:
    expected = stack.undisturbed(ONLINE)
    nodes = Nodes(stack, tmp_path / "other")
    nodes.start(1)
    nodes.start(0)
    run_id = stack.create("placed", PLACED)
    stack.wait_for_step(run_id, 3, seconds=200)
    # What samples is on the second node, and nothing of it on the first.
    assert len(unit_pids(stack, run_id, 1)) == 3
    assert not unit_pids(stack, run_id, 0)
    os.kill(unit_pids(stack, run_id, 1)[0], signal.SIGKILL)
    (run,) = stack.finish(run_id, seconds=300)
    assert (run.state, run.attempt) == ("succeeded", 1), run.reason
    assert any("was lost, and is being restarted" in line for line in stack.log_lines(run_id))
    result = stack.result(run_id)
    assert result.losses == expected.losses
    assert result.weights == expected.weights
    stack.wait(lambda: not stack.stage_pids(run_id, 1), 30, "units outlive their run")


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_node_costs_an_attempt_and_the_next_one_ends_the_run(stack: Stack, tmp_path: Path, lost: int) -> None:
    expected = stack.undisturbed(ONLINE)
    nodes = Nodes(stack, tmp_path / "other")
    both = [nodes.start(0), nodes.start(1)]
    run_id = stack.create("placed", PLACED)
    stack.wait_for_step(run_id, 9, seconds=200)
    both[lost].signal(signal.SIGKILL)
    if lost:
        # Were it back before Ray has missed it, its units would be restarted and no attempt be lost.
        stack.wait(lambda: stack.run(run_id).attempt == 2, 120, "no one misses the second node")
    nodes.start(lost)
    (run,) = stack.finish(run_id, seconds=400)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert any("resumed from step" in line for line in stack.log_lines(run_id))
    assert stack.result(run_id).weights == expected.weights


def test_a_placement_without_room_fails_at_once_and_says_what_to_do(stack: Stack) -> None:
    run_id = stack.create("too much", ONLINE | {"placement": {"rollout": 2}}, max_attempts=3)
    stack.start_worker("only", devices="0,1")
    (run,) = stack.finish(run_id)
    assert (run.state, run.reason_code, run.attempt) == ("failed", "placement_does_not_fit", 1)
    assert run.error is not None
    assert "rollout 2 x 1" in run.error["detail"]
