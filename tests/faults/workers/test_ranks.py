"""A worker with several devices starts a training stage once for each, under torchrun."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from fault_stack import SFT, Stack


@pytest.mark.long
def test_a_training_run_uses_all_devices_of_its_worker_and_they_all_end_with_it(stack: Stack) -> None:
    expected = stack.undisturbed(SFT)
    run_id = stack.create("sft", SFT)
    worker = stack.start_worker("pair", devices="0-1")
    stack.wait_for_step(run_id, 4)
    # A guardian, torchrun and two ranks at least; torchrun gives each rank a session of its own.
    pids = stack.stage_pids(run_id)
    assert len(pids) >= 4
    worker.signal(signal.SIGKILL)
    stack.wait(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), 5, "a rank outlived its worker")
    stack.start_worker("second", devices="0-1")
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert run.device_seconds > 0
    losses = stack.result(run_id).losses
    assert losses == {step: pytest.approx(value, rel=1e-4) for step, value in expected.losses.items()}
