"""A disk that fills up in the middle of a run: the run reports it, the database keeps its reserve, and it resumes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_stack import SFT, Stack

from support.processes.small_disk import MB, fill, free, small_disk

RESERVE_MB = 40


@pytest.fixture
def worker_home(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 160) as place:
        yield place


@pytest.mark.long
def test_a_run_that_writes_nothing_itself_is_ended_too_when_its_disk_fills_up(stack: Stack) -> None:
    stack.environment["STEERBOARD_DISK_RESERVE_MB"] = str(RESERVE_MB)
    endless = {**SFT, "epochs": 1000, "checkpoint_every": 1_000_000, "checkpoint_seconds": 0}
    run_id = stack.create("endless", endless, max_attempts=1)
    worker = stack.start_worker("only")
    stack.wait(lambda: bool(stack.result(run_id).metrics), 60, "it did not train")
    ballast = fill(stack.home, (RESERVE_MB - 4) * MB)
    (run,) = stack.finish(run_id, seconds=30)
    assert (run.state, run.reason_code) == ("failed", "no_space_left"), run.reason
    ballast.unlink()
    worker.stop()


@pytest.mark.long
def test_a_run_whose_disk_fills_up_ends_with_that_reason_and_is_resumed_when_there_is_room(stack: Stack) -> None:
    stack.environment["STEERBOARD_DISK_RESERVE_MB"] = str(RESERVE_MB)
    expected = stack.undisturbed(SFT)
    run_id = stack.create("sft", SFT, max_attempts=1)
    worker = stack.start_worker("only")
    stack.wait_for_step(run_id, 20)
    ballast = fill(stack.home, RESERVE_MB * MB)
    (run,) = stack.finish(run_id)
    assert (run.state, run.reason_code) == ("failed", "no_space_left"), run.reason
    assert "kept for the database" in run.reason
    assert free(stack.home) > (RESERVE_MB - 8) * MB
    assert not list((stack.home / "work" / str(run_id)).glob("a*"))
    ballast.unlink()
    stack.resume(run_id, "ann")
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert any(line.startswith("resumed from step") for line in stack.log_lines(run_id))
    assert stack.result(run_id) == expected
    worker.stop()
