"""Why a stage process ended: its own last words first, then how it ended, then what the machine says."""

from __future__ import annotations

import signal
from pathlib import Path

from steerboard.runs.endings import Failure
from steerboard_contracts.stage import Failed, Succeeded
from steerboard_workers.stages.memory_signs import SIGNS

_MEMORY_SIGNS = ("memoryerror", *SIGNS)
_MEMORY_HINT = "Lower micro_tokens or batch_size, or give the run to a pool with more memory."


def oom_kills() -> int:
    """Processes that the kernel has killed for memory in this process's control group, as far as it tells."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return 0
    total = 0
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            candidates = [Path("/sys/fs/cgroup" + path) / "memory.events", Path("/sys/fs/cgroup/memory.events")]
        elif "memory" in controllers.split(","):
            root = "/sys/fs/cgroup/memory"
            candidates = [Path(root + path) / "memory.oom_control", Path(root) / "memory.oom_control"]
        else:
            continue
        file = next((candidate for candidate in candidates if candidate.is_file()), None)
        if file is not None:
            counters = dict(entry.split() for entry in file.read_text().splitlines())
            total += int(counters.get("oom_kill", 0))
    return total


def failure_of(
    result: Succeeded | Failed | None, status: str | None, tail: list[str], killed_for_memory: bool
) -> Failure | None:
    """None when the stage succeeded. `status` is the guardian's word; None means that the guardian itself was killed.

    `tail` holds the last lines of the log.
    """
    if isinstance(result, Failed):
        return Failure(result.code, result.detail, result.hint, result.errors, result.retryable, result.fix)
    if isinstance(result, Succeeded) and status == "exit 0":
        return None
    if status == "lease over":
        detail = "The worker could not renew its lease in time, so the stage was ended."
        return Failure("worker_lost", detail, "The machine or the database may be overloaded.", retryable=True)
    how = f"It ended with {_in_words(status)}." if status else "Its guardian was killed."
    if killed_for_memory or (status != "exit 0" and _speaks_of_memory(tail)):
        return Failure("out_of_memory", f"The stage ran out of memory. {how}", _MEMORY_HINT, retryable=True)
    if status is None or status == f"signal {int(signal.SIGKILL)}":
        hint = "Somebody, or the kernel for want of memory, killed it; it resumes from its last checkpoint."
        return Failure("stage_killed", f"The stage was killed. {how}", hint, retryable=True)
    last = " ".join(tail[-3:])[-500:]
    detail = f"The stage crashed. {how}" + (f" Its last words: {last}" if last else "")
    return Failure("stage_crashed", detail, "The run's log has the rest.", retryable=True)


def _speaks_of_memory(tail: list[str]) -> bool:
    text = "\n".join(tail).lower()
    return any(sign in text for sign in _MEMORY_SIGNS)


def _in_words(status: str) -> str:
    kind, _, number = status.partition(" ")
    if kind == "signal":
        try:
            return signal.Signals(int(number)).name
        except ValueError:
            return f"signal {number}"
    return f"exit code {number}"
