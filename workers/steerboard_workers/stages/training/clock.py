"""When the steps of a run were taken, over all of its attempts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from steerboard_contracts.placement import RoleNodes

DEVICE_SECONDS = "device_seconds"
WALL_SECONDS = "wall_seconds"


class RunClock:
    """`device_seconds`: devices times the time of the processes that took the steps so far, without what a process did
    after its last checkpoint and lost. `wall_seconds`: since the first attempt began, pauses included.

    `started`: when this process began, by `ticks`.
    """

    def __init__(
        self,
        devices: int,
        started: float,
        ticks: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._devices = devices
        self._started = started
        self._ticks = ticks
        self._now = now
        self._before: float | None = 0.0
        self.began: float | None = now() - (ticks() - started)

    def resume(self, began: float | None, values: dict[str, Any]) -> None:
        """Continue after the step of these `values`. Checkpoints of earlier releases have no times; then the following
        steps have none either, since part of them is unknown."""
        self.began = began
        self._before = values.get(DEVICE_SECONDS)

    def times(self) -> dict[str, float]:
        """The times of a step that ends now."""
        if self.began is None or self._before is None:
            return {}
        spent = self._before + self._devices * (self._ticks() - self._started)
        return {DEVICE_SECONDS: spent, WALL_SECONDS: max(0.0, self._now() - self.began)}


def devices_of(processes: int, roles: RoleNodes | None) -> int:
    """How many devices a run holds whose training has so many processes."""
    if roles is None:
        return processes
    if not roles.takes_devices:
        return len(roles.nodes)
    return sum(node.training + sum(unit.devices for unit in node.units) for node in roles.nodes)
