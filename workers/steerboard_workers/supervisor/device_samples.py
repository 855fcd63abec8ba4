"""What the devices and processes of a run do while it runs: the metrics `device/QUANTITY/WORKER/DEVICE`, whose step is
the number of seconds since the run began."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

import psutil

from steerboard_contracts.metric_order import DEVICE
from steerboard_contracts.stage.events import Metrics
from steerboard_workers.gpus import GpuWatch

SAMPLE_SECONDS = 10.0
# The distance of points is this share of the time that has passed, so that a run of ten days has some 2,500 of each.
_SHARE = 1 / 360
_GB = 1e9


class ProcessTree:
    """A process and its descendants: how many cores they use, and how much memory."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seconds: dict[int, float] = {}
        self._at = time.monotonic()

    def sample(self) -> dict[str, float]:
        """The use since the last call; empty once the processes are gone."""
        seconds: dict[int, float] = {}
        memory = 0
        try:
            root = psutil.Process(self._pid)
            processes = [root, *root.children(recursive=True)]
        except psutil.Error:
            return {}
        for process in processes:
            try:
                with process.oneshot():
                    used = process.cpu_times()
                    seconds[process.pid] = used.user + used.system
                    of_process = process.memory_info()
                    # What they share, such as files they have mapped, would count as often as there are processes.
                    memory += of_process.rss - getattr(of_process, "shared", 0)
            except psutil.Error:
                continue  # it has ended meanwhile
        now = time.monotonic()
        spent = sum(max(0.0, value - self._seconds.get(pid, 0.0)) for pid, value in seconds.items())
        cores = spent / max(now - self._at, 1e-9)
        self._seconds, self._at = seconds, now
        return {"cpu_cores": cores, "memory_gb": memory / _GB}


class DeviceSamples:
    """Looks every `SAMPLE_SECONDS`; `take` gives a point when one is due. `elapsed`: seconds from the beginning of the
    run's first attempt until this is made."""

    def __init__(
        self,
        worker: str,
        gpus: GpuWatch,
        processes: ProcessTree,
        elapsed: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worker = worker.replace("/", "-")
        self._gpus = gpus
        self._processes = processes
        self._clock = clock
        self._began = clock() - elapsed
        self._looked = self._told = clock()
        self._seen: dict[str, list[float]] = defaultdict(list)
        processes.sample()  # the use of a processor is one between two looks

    def take(self) -> Metrics | None:
        """Means since the last point; of memory, the most."""
        now = self._clock()
        if now - self._looked < SAMPLE_SECONDS:
            return None
        self._looked = now
        for name, value in self._sample().items():
            self._seen[name].append(value)
        elapsed = now - self._began
        if now - self._told < max(SAMPLE_SECONDS, elapsed * _SHARE):
            return None
        self._told = now
        seen, self._seen = self._seen, defaultdict(list)
        values = {name: max(of) if "memory" in name else sum(of) / len(of) for name, of in seen.items()}
        return Metrics(step=round(elapsed), values=values) if values else None

    def _sample(self) -> dict[str, float]:
        sampled = {f"{DEVICE}{name}/{self._worker}": value for name, value in self._processes.sample().items()}
        for gpu in self._gpus.sample():
            figures = {
                "gpu_memory_gb": gpu.memory_used / _GB,
                "gpu_utilization_percent": 100 * gpu.utilization,
                "gpu_power_watts": gpu.power,
            }
            sampled |= {
                f"{DEVICE}{name}/{self._worker}/GPU {gpu.id}": value
                for name, value in figures.items()
                if value is not None
            }
        return sampled
