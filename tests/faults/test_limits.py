"""Memory, disk and people's patience run out: each is a clear end with its reason, and the queue continues."""

from __future__ import annotations

import os
import time

import pytest
from fault_stack import SFT, Stack


def quick(**changes: object) -> dict[str, object]:
    return {**SFT, "max_steps": 4, "checkpoint_every": 0, **changes}


@pytest.mark.long
def test_a_stage_that_runs_out_of_memory_every_time_fails_with_that_reason_and_the_queue_goes_on(stack: Stack) -> None:
    greedy = stack.create("greedy", quick(), max_attempts=2)
    modest = stack.create_mix("modest")
    stack.start_worker("small", STEERBOARD_STAGE_MEMORY_MB="400")
    failed, succeeded = stack.finish(greedy, modest)
    assert (failed.state, failed.reason_code, failed.attempt) == ("failed", "out_of_memory", 2), failed.reason
    assert "memory" in failed.reason
    assert failed.error is not None
    assert failed.error["hint"]
    assert succeeded.state == "succeeded", succeeded.reason


# The first limit is too small for the model that the worker fetches, the second for the stage's checkpoint.
@pytest.mark.long
@pytest.mark.parametrize("limit", [60_000, 150_000])
def test_a_full_disk_is_called_that_and_leaves_nothing_half_written(stack: Stack, limit: int) -> None:
    run_id = stack.create("sft", {**SFT, "max_steps": 8}, max_attempts=2)
    stack.start_worker("full", file_limit=limit)
    (run,) = stack.finish(run_id)
    assert (run.state, run.reason_code, run.attempt) == ("failed", "no_space_left", 2), run.reason
    assert not list((stack.home / "artifacts").glob("incoming/*"))
    work = stack.home / "work" / str(run_id)
    assert not list(work.glob("a*"))
    assert not list(work.glob("checkpoints/*"))


@pytest.mark.long
def test_a_cancelled_run_ends_with_its_whole_process_group_and_says_who_did_it(stack: Stack) -> None:
    run_id = stack.create("sft", SFT)
    after = stack.create("after", quick())
    stack.start_worker("only")
    stack.wait_for_step(run_id, 4)
    pids = stack.stage_pids(run_id)
    assert len(pids) >= 2
    stack.cancel(run_id, "token ci")
    asked = time.monotonic()
    (run,) = stack.finish(run_id)
    assert time.monotonic() - asked < 5
    assert (run.state, run.reason, run.reason_code) == ("cancelled", "cancelled by token ci", "cancelled")
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert stack.finish(after)[0].state == "succeeded"
    assert run.failed_device_seconds > 0


@pytest.mark.long
def test_a_cancelled_run_that_is_resumed_goes_on_from_its_checkpoint(stack: Stack) -> None:
    run_id = stack.create("sft", SFT)
    stack.start_worker("only")
    stack.wait_for_step(run_id, 20)
    stack.cancel(run_id, "ann")
    stack.finish(run_id)
    stack.resume(run_id, "ann")
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert any(line.startswith("resumed from step") for line in stack.log_lines(run_id))
    assert stack.result(run_id) == stack.undisturbed(SFT)
    # The worker clears up once the state is stored.
    stack.wait(lambda: not (stack.home / "work" / str(run_id)).exists(), 30, "the folder of the run is still there")
