"""A worker's report on its GPUs. NVML itself is replaced: the machines that run this have no GPU."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from steerboard_workers.gpus import GpuUse, GpuWatch


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Two cards, as the package `pynvml` shows them."""
    module = ModuleType("pynvml")
    answers = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByIndex": lambda index: ("first", "second")[index],
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=5 << 30, total=80 << 30),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=25 if handle == "first" else 100),
        "nvmlDeviceGetName": lambda handle: f"card {handle}",
        "nvmlDeviceGetPowerUsage": lambda handle: 350_500,
    }
    for name, answer in answers.items():
        setattr(module, name, answer)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def test_each_device_of_the_worker_is_told_and_no_other(nvml: ModuleType) -> None:
    assert GpuWatch(["1"]).sample() == [GpuUse("1", "card second", 1.0, 5 << 30, 80 << 30, 350.5)]
    assert [gpu.utilization for gpu in GpuWatch(["0", "1"]).sample()] == [0.25, 1.0]


def test_a_card_that_does_not_tell_its_power_has_its_other_figures(nvml: ModuleType) -> None:
    del nvml.nvmlDeviceGetPowerUsage
    (gpu,) = GpuWatch(["0"]).sample()
    assert (gpu.power, gpu.utilization) == (None, 0.25)


def test_a_driver_that_fails_ends_the_figures_and_not_the_worker(nvml: ModuleType) -> None:
    watch = GpuWatch(["0", "7"])
    assert watch.sample() == []
    nvml.nvmlDeviceGetHandleByIndex = lambda index: "first"  # type: ignore[attr-defined]
    assert watch.sample() == []


def test_without_the_driver_there_are_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert GpuWatch(["0"]).sample() == []


def test_a_worker_on_the_cpu_never_asks(nvml: ModuleType) -> None:
    nvml.nvmlInit = lambda: pytest.fail("asked")  # type: ignore[attr-defined]
    assert GpuWatch([]).sample() == []
