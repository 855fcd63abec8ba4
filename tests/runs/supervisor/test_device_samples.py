"""What the devices and processes of a run do, as curves over its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from steerboard_workers.gpus import GpuUse, GpuWatch
from steerboard_workers.supervisor import device_samples
from steerboard_workers.supervisor.device_samples import DeviceSamples, ProcessTree
from support.patience import PATIENCE

HOUR = 3600.0
DAY = 24 * HOUR


class Card(GpuWatch):
    """One whose use the test sets."""

    def __init__(self) -> None:
        super().__init__([])
        self.utilization = 0.5
        self.memory = 10 * 10**9
        self.power: float | None = 300.0

    def sample(self) -> list[GpuUse]:
        return [GpuUse("3", "card", self.utilization, self.memory, 80 * 10**9, self.power)]


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def samples(card: GpuWatch, clock: Clock, elapsed: float = 0.0) -> DeviceSamples:
    return DeviceSamples("host/a", card, ProcessTree(os.getpid()), elapsed, clock)


def test_a_point_names_the_worker_and_the_device_and_lies_at_the_runs_seconds() -> None:
    clock = Clock()
    watched = samples(Card(), clock, elapsed=50.0)
    clock.seconds += 9
    assert watched.take() is None
    clock.seconds += 1
    point = watched.take()
    assert point is not None
    assert point.step == 60
    assert point.values.keys() == {
        "device/cpu_cores/host-a",
        "device/memory_gb/host-a",
        "device/gpu_memory_gb/host-a/GPU 3",
        "device/gpu_utilization_percent/host-a/GPU 3",
        "device/gpu_power_watts/host-a/GPU 3",
    }
    assert point.values["device/gpu_utilization_percent/host-a/GPU 3"] == 50.0
    assert point.values["device/memory_gb/host-a"] > 0.001


def test_a_later_point_stands_for_all_looks_before_it() -> None:
    clock, card = Clock(), Card()
    watched = samples(card, clock, elapsed=2 * HOUR)  # a point every 20 seconds
    clock.seconds += 10
    card.utilization, card.memory, card.power = 0.0, 30 * 10**9, None
    assert watched.take() is None
    clock.seconds += 11
    card.utilization, card.memory = 1.0, 20 * 10**9
    point = watched.take()
    assert point is not None
    assert point.values["device/gpu_utilization_percent/host-a/GPU 3"] == 50.0
    assert point.values["device/gpu_memory_gb/host-a/GPU 3"] == 30.0  # the most
    assert "device/gpu_power_watts/host-a/GPU 3" not in point.values


def test_a_run_of_ten_days_keeps_few_points() -> None:
    clock = Clock()
    watched = samples(Card(), clock)
    watched._processes.sample = dict  # type: ignore[method-assign]
    steps = []
    while clock.seconds < 1000.0 + 10 * DAY:
        clock.seconds += device_samples.SAMPLE_SECONDS
        if (point := watched.take()) is not None:
            steps.append(point.step)
    assert 1500 < len(steps) < 4000
    assert steps == sorted(set(steps))


def test_a_process_that_works_takes_a_core_with_its_descendants() -> None:
    busy = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    parent = subprocess.Popen([sys.executable, "-c", below], start_new_session=True)
    try:
        tree = ProcessTree(parent.pid)
        until = time.monotonic() + PATIENCE
        # However little of a core a busy machine leaves it: more than a parent takes that waits.
        while tree.sample().get("cpu_cores", 0.0) < 0.01:
            assert time.monotonic() < until
            time.sleep(0.5)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


def test_a_process_that_is_gone_has_no_figures() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert ProcessTree(gone.pid).sample() == {}


@pytest.mark.parametrize("elapsed", [0.0, DAY])
def test_without_figures_there_is_no_point(elapsed: float) -> None:
    clock = Clock()
    watched = samples(GpuWatch([]), clock, elapsed)
    watched._processes.sample = dict  # type: ignore[method-assign]
    clock.seconds += DAY
    assert watched.take() is None
