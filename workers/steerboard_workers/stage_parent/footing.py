"""What a process has from its parent besides its environment: a fork must match the worker that asks for it."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from typing import Any

_LIMITS = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


def footing() -> dict[str, Any]:
    """This process's user, limits, priority, processors, control groups and namespaces, as JSON can carry them."""
    facts: dict[str, Any] = {
        "user": [*os.getresuid(), *os.getresgid(), *sorted(os.getgroups())],
        "limits": {name: list(resource.getrlimit(getattr(resource, name))) for name in _LIMITS},
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "processors": sorted(os.sched_getaffinity(0)),
    }
    for name in _NAMESPACES:
        with contextlib.suppress(OSError):
            facts[name] = os.readlink(f"/proc/self/ns/{name}")
    with contextlib.suppress(OSError):
        facts["cgroups"] = Path("/proc/self/cgroup").read_text()
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text()
        facts["mask"] = next((line.split()[1] for line in status.splitlines() if line.startswith("Umask:")), "")
    return facts
