"""Workers with stage parents of their own, several on one machine: each leaves with all that was its."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from fault_stack import SFT, Stack, Worker


def parents(worker: Worker) -> list[psutil.Process]:
    children = []
    for child in psutil.Process(worker.process.pid).children():
        with suppress(psutil.Error):
            if "steerboard_workers.stage_parent" in child.cmdline():
                children.append(child)
    return children


def warm_stages(stack: Stack, run_id: object, worker: Worker) -> list[int]:
    """Processes of a run that the worker's parent has forked."""
    forked = {child.pid for parent in parents(worker) for child in parent.children(recursive=True)}
    return [pid for pid in stack.stage_pids(run_id) if pid in forked]  # type: ignore[arg-type]


@pytest.mark.long
def test_two_workers_fork_their_stages_side_by_side_and_a_killed_one_takes_its_own_with_it(stack: Stack) -> None:
    del stack.environment["STEERBOARD_STAGE_PARENT"]
    stack.environment["STEERBOARD_LEASE_SECONDS"] = "6"
    expected = stack.undisturbed(SFT)
    runs = [stack.create(name, SFT | {"epochs": 40, "max_steps": 1200}) for name in ("one", "other")]
    first, second = (stack.start_worker(name) for name in ("first", "second"))
    stack.wait(lambda: all(stack.stage_pids(run) for run in runs), 120, "stages did not start")
    for run in runs:
        stack.wait_for_step(run, 4, 120)
    theirs = {worker.log: [run for run in runs if warm_stages(stack, run, worker)] for worker in (first, second)}
    assert sorted(map(len, theirs.values())) == [1, 1]
    lost, kept = theirs[first.log][0], theirs[second.log][0]
    gone = [*(parent.pid for parent in parents(first)), *stack.stage_pids(lost)]
    assert len(gone) >= 3
    goes_on = stack.stage_pids(kept)
    first.signal(signal.SIGKILL)
    first.process.wait()
    stack.wait(lambda: not any(map(alive, gone)), 5, "something outlived its worker")
    assert set(goes_on) <= set(stack.stage_pids(kept))
    assert all(map(alive, goes_on))
    for run in runs:
        stack.cancel(run, "tester")
    stack.finish(*runs)
    assert stack.undisturbed(SFT) == expected


@pytest.mark.long
def test_a_worker_forks_again_after_its_stage_parent_was_killed(stack: Stack) -> None:
    del stack.environment["STEERBOARD_STAGE_PARENT"]
    expected = stack.undisturbed(SFT)
    worker = stack.start_worker("one")
    run = stack.create("killed", SFT)
    stack.wait_for_step(run, 4, 120)
    (parent,) = parents(worker)
    os.kill(parent.pid, signal.SIGKILL)
    (ended,) = stack.finish(run)
    assert (ended.state, ended.attempt) == ("succeeded", 1), "its stage continues"
    assert stack.result(run) == expected
    (cold,) = stack.finish(stack.create("cold", SFT))
    assert cold.state == "succeeded"
    stack.wait(lambda: len(parents(worker)) == 1, 30, "there is no parent")
    again = stack.create("warm", SFT)
    stack.wait(lambda: bool(warm_stages(stack, again, worker)), 60, "it was not forked")
    stack.finish(again)
    assert stack.result(again) == expected


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False
