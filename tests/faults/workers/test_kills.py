"""kill -9 of the stage, of its guardian and of the worker, mid-epoch: the run resumes as if nothing had happened."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time

import pytest
from fault_stack import SFT, Stack

from support.patience import PATIENCE

SHORT_LEASE = {"STEERBOARD_LEASE_SECONDS": "4"}
SEEDS = 50
# 27 steps.
SHORT = {**SFT, "epochs": 1}


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_fifty_stages_killed_at_random_steps_resume_to_the_same_weights_and_metrics(stack: Stack) -> None:
    """One run a seed, two workers; each run's stage is killed once, somewhere in its 81 steps."""
    expected = stack.undisturbed(SFT)
    runs = {stack.create(f"seed-{seed}", SFT): random.Random(seed) for seed in range(SEEDS)}
    for name in ("one", "two"):
        stack.start_worker(name)
    targets = {run_id: (chance.randrange(0, 64), chance.uniform(0, 0.03)) for run_id, chance in runs.items()}
    deadline = time.monotonic() + 30 * len(runs)
    while targets and time.monotonic() < deadline:
        for run_id, (step, delay) in list(targets.items()):
            if stack.checkpoint_step(run_id) >= step and stack.stage_pids(run_id):
                time.sleep(delay)
                if stack.kill_stage(run_id):
                    del targets[run_id]
        time.sleep(0.002)
    assert not targets, "some stages were never caught alive"
    for run in stack.finish(*runs, seconds=20 * len(runs)):
        assert (run.state, run.attempt) == ("succeeded", 2), run.reason
        assert stack.result(run.id) == expected
        assert run.failed_device_seconds > 0


@pytest.mark.long
def test_a_killed_worker_takes_its_stage_along_and_another_one_goes_on(stack: Stack) -> None:
    expected = stack.undisturbed(SHORT)
    run_id = stack.create("sft", SHORT)
    first = stack.start_worker("first", **SHORT_LEASE)
    stack.wait_for_step(run_id, 8)
    first.signal(signal.SIGKILL)
    killed = time.monotonic()
    stack.wait(lambda: not stack.stage_pids(run_id), 2, "the stage outlived its worker")
    assert time.monotonic() - killed < 2
    stack.start_worker("second", **SHORT_LEASE)
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert stack.timeline(run_id) == ["pending", "queued", "running", "queued", "running", "succeeded"]
    assert stack.result(run_id) == expected


@pytest.mark.long
def test_a_run_whose_machine_dies_more_often_than_it_has_attempts_still_succeeds(stack: Stack) -> None:
    run_id = stack.create("sft", SFT, max_attempts=1)
    for number in range(1, 4):
        machine = stack.start_worker(f"machine-{number}", **SHORT_LEASE)
        stack.wait_for_step(run_id, 8 * number)
        machine.signal(signal.SIGKILL)
        for pid in stack.stage_pids(run_id):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    stack.start_worker("last", **SHORT_LEASE)
    (run,) = stack.finish(run_id)
    assert run.state == "succeeded", run.reason
    assert (run.attempt, run.interruptions, run.failed_attempts) == (4, 3, 0)
    assert stack.result(run_id) == stack.undisturbed(SFT)


@pytest.mark.long
def test_a_killed_guardian_leaves_no_stage_and_the_run_goes_on(stack: Stack) -> None:
    run_id = stack.create("sft", SFT)
    stack.start_worker("only")
    stack.wait_for_step(run_id, 8)
    for pid in stack.stage_pids(run_id):
        if os.getpgid(pid) == pid:
            os.kill(pid, signal.SIGKILL)
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert stack.result(run_id) == stack.undisturbed(SFT)


@pytest.mark.long
def test_a_stopped_worker_gives_its_run_back_without_losing_an_attempt(stack: Stack) -> None:
    run_id = stack.create("sft", SFT, max_attempts=1)
    first = stack.start_worker("first")
    stack.wait_for_step(run_id, 8)
    first.signal(signal.SIGTERM)
    assert first.process.wait(timeout=PATIENCE) == 0
    run = stack.run(run_id)
    assert (run.state, run.reason_code) == ("queued", "worker_stopped"), run.reason
    assert not stack.stage_pids(run_id)
    stack.start_worker("second")
    (run,) = stack.finish(run_id)
    assert run.state == "succeeded", run.reason
    assert stack.result(run_id) == stack.undisturbed(SFT)


@pytest.mark.long
def test_a_frozen_worker_loses_its_run_to_another_and_writes_nothing_when_it_wakes(stack: Stack) -> None:
    expected = stack.undisturbed(SFT)
    run_id = stack.create("sft", SFT)
    frozen = stack.start_worker("frozen", **SHORT_LEASE)
    stack.wait_for_step(run_id, 12)
    frozen.signal(signal.SIGSTOP)
    stack.wait(lambda: not stack.stage_pids(run_id), 6, "the stage of a frozen worker outlived its lease")
    stack.start_worker("fresh", **SHORT_LEASE)
    stack.wait(lambda: stack.run(run_id).attempt == 2, 20, "nobody took over")
    frozen.signal(signal.SIGCONT)
    (run,) = stack.finish(run_id)
    stack.wait(
        lambda: "lease" in frozen.log.read_text(),
        10,
        "the stale worker did not notice",
    )
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert stack.timeline(run_id) == ["pending", "queued", "running", "queued", "running", "succeeded"]
    assert stack.result(run_id) == expected
