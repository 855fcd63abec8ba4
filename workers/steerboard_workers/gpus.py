"""What the GPUs of a worker are doing, from NVML. A machine without one, or without its driver, has no figures."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GpuUse:
    """`id` as in the worker's devices; `utilization` 0 to 1; memory in bytes; `power` in watts, where it is known."""

    id: str
    name: str
    utilization: float
    memory_used: int
    memory: int
    power: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class GpuWatch:
    """Samples `devices` (indexes in the order of the PCI bus, as NVML counts them).

    The first failure is logged and ends the sampling: figures are not worth a worker.
    """

    def __init__(self, devices: list[str]) -> None:
        self._devices = devices
        self._nvml: Any = None
        if not devices:
            return
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
        except Exception as error:
            log.warning("GPU metrics are not available: %s", error)

    def sample(self) -> list[GpuUse]:
        """One entry a device; none where NVML does not answer."""
        if self._nvml is None:
            return []
        try:
            return [self._one(device) for device in self._devices]
        except Exception as error:
            log.warning("GPU metrics are no longer available: %s", error)
            self._nvml = None
            return []

    def _one(self, device: str) -> GpuUse:
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(int(device))
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        utilization = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        name = nvml.nvmlDeviceGetName(handle)
        return GpuUse(device, name, utilization, int(memory.used), int(memory.total), self._power(handle))

    def _power(self, handle: Any) -> float | None:
        """Some cards, and shares of one, do not tell."""
        try:
            return float(self._nvml.nvmlDeviceGetPowerUsage(handle)) / 1000
        except Exception:
            return None
