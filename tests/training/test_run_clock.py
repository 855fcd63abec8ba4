"""The times of a run's steps, over its attempts."""

from __future__ import annotations

from steerboard_contracts.placement import NodeShare, RoleNodes, Unit
from steerboard_workers.stages.training.clock import RunClock, devices_of


class Clocks:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.ticks = 100.0
        self.now = 1_000.0

    def start(self, devices: int) -> RunClock:
        return RunClock(devices, self.ticks, lambda: self.ticks, lambda: self.now)

    def work(self, seconds: float) -> None:
        self.ticks += seconds
        self.now += seconds


def test_device_time_counts_every_device_and_wall_time_none() -> None:
    clocks = Clocks()
    clock = clocks.start(4)
    clocks.work(10)
    assert clock.times() == {"device_seconds": 40.0, "wall_seconds": 10.0}


def test_a_resumed_run_continues_from_its_checkpoint_and_the_pause_is_wall_time_only() -> None:
    clocks = Clocks()
    first = clocks.start(2)
    clocks.work(10)
    kept = first.times()
    clocks.work(5)  # lost with the process
    clocks.now += 100
    clocks.ticks = 0.0  # another machine
    second = clocks.start(2)
    second.resume(first.began, kept)
    clocks.work(3)
    assert second.times() == {"device_seconds": 26.0, "wall_seconds": 118.0}


def test_after_a_checkpoint_without_times_there_are_none() -> None:
    clock = Clocks().start(1)
    clock.resume(None, {"loss": 1.0})
    assert clock.times() == {}


def test_roles_that_have_devices_of_their_own_count() -> None:
    units = (Unit(role="rollout", number=0, devices=2), Unit(role="rewards", number=0, devices=1))
    apart = RoleNodes(nodes=[NodeShare(training=5, units=units)], takes_devices=True)
    assert devices_of(5, apart) == 8
    assert devices_of(5, apart.model_copy(update={"takes_devices": False})) == 1
    assert devices_of(5, None) == 5
