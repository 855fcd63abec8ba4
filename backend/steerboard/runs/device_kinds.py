"""The kind of device that a worker computes on, by which the times of runs can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CPU = "CPU"


def device_kind(devices: Mapping[str, Any]) -> str | None:
    """The name of the GPUs of a worker's `devices`, or `CPU`; None where GPUs could not be asked for theirs."""
    if not devices.get("ids"):
        return CPU
    names = sorted({str(gpu["name"]) for gpu in devices.get("gpus") or [] if gpu.get("name")})
    return " and ".join(names) or None
