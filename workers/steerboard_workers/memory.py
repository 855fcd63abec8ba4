"""How much of a machine's memory those may use who run a user's model, so the platform itself keeps some."""

from __future__ import annotations

from pathlib import Path

import psutil

from steerboard.platform.settings import Settings

# The rest is for the worker, and for servers and an API on the same machine.
_STAGE_SHARE = 0.8
_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory() -> int:
    """Bytes of this machine, or of the container that this process is in."""
    total: int = psutil.virtual_memory().total
    for name in _LIMIT_FILES:
        try:
            total = min(total, int(Path(name).read_text()))
        except (OSError, ValueError):
            continue  # there is no such group, or its limit is `max`
    return total


def stage_memory(settings: Settings) -> int:
    """Bytes that all processes of a stage may use together."""
    if settings.stage_memory_mb is not None:
        return settings.stage_memory_mb << 20
    return int(machine_memory() * _STAGE_SHARE)
