"""Why a stage process ended: its own error first, then how it ended, then signs from the machine."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from steerboard.runs.state.attempt_outcomes import Failure
from steerboard_contracts.errors import BadModel
from steerboard_contracts.stage.events import Failed, Paused, Succeeded
from steerboard_workers.stages.oom import SIGNS
from steerboard_workers.stages.runtime import MODEL_MARKS

_MEMORY_SIGNS = ("memoryerror", *SIGNS)
_MEMORY_HINT = "Lower micro_tokens or batch_size, or give the run to a pool with more memory."

# How native code ends that has lost its way. SIGKILL and the like come from elsewhere.
_CRASHES = frozenset(
    f"signal {int(number)}" for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
)
_LIMIT_HINT = "The limit is STEERBOARD_STAGE_MEMORY_MB of its worker, or else most of the machine's memory."


def oom_kills() -> int:
    """Processes that the kernel has killed for memory in this process's control group, as far as it shows."""
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
    result: Succeeded | Paused | Failed | None,
    status: str | None,
    tail: list[str],
    killed_for_memory: bool,
    doing: str | None = None,
) -> Failure | None:
    """Returns None when the stage succeeded. `status` is the guardian's word; None means that the guardian itself was
    killed.

    `tail` holds the last lines of the log, `doing` what it was doing with a model's files.
    """
    if isinstance(result, Failed):
        return Failure(result.code, result.detail, result.hint, result.errors, result.retryable, result.fix)
    if isinstance(result, Succeeded | Paused) and status == "exit 0":
        return None
    if status == "lease over":
        detail = "The worker could not renew its lease in time, so the stage was ended."
        return Failure("worker_lost", detail, "The machine or the database may be overloaded.", retryable=True)
    kind, _, figure = (status or "").partition(" ")
    if kind == "memory":
        detail = f"The stage used {int(figure) >> 20:,} MB of memory, more than it may."
        return Failure("out_of_memory", detail, f"{_MEMORY_HINT} {_LIMIT_HINT}", retryable=True)
    how = f"It ended with {in_words(status)}." if status else "Its guardian was killed."
    if killed_for_memory or (status != "exit 0" and speaks_of_memory(tail)):
        return Failure("out_of_memory", f"The stage ran out of memory. {how}", _MEMORY_HINT, retryable=True)
    if status is None or status == f"signal {int(signal.SIGKILL)}":
        hint = "A user killed it, or the kernel did because memory ran out; it resumes from its last checkpoint."
        return Failure("stage_killed", f"The stage was killed. {how}", hint, retryable=True)
    if doing is not None and status in _CRASHES:
        return Failure(
            BadModel.code,
            f"A library crashed ({in_words(status)}) while {doing}.",
            "Its files crash native code every time: save it again with save_pretrained, or use another.",
        )
    last = " ".join(tail[-3:])[-500:]
    detail = f"The stage crashed. {how}" + (f" Its last output: {last}" if last else "")
    return Failure("stage_crashed", detail, "The run's log has the rest.", retryable=True)


def doing_with_model(directory: Path) -> str | None:
    """What a process of the stage does, or died of doing, with a model's files."""
    for mark in sorted(directory.glob(f"{MODEL_MARKS}.*")):
        with contextlib.suppress(OSError):  # it has just come to its end
            return mark.read_text()
    return None


def stalled(seconds: float, doing: str | None) -> Failure:
    """The failure of a stage that was ended because it reported nothing for so long, while `doing` that with a model's
    files."""
    what = "it had made no progress" if doing is None else f"it hung while {doing}"
    detail = f"The stage reported nothing for {seconds:,.0f} seconds and was ended: {what}."
    limit = "STEERBOARD_STAGE_STALL_SECONDS" if doing is None else "STEERBOARD_MODEL_STALL_SECONDS"
    hint = f"Its log shows what it did last. Its worker's {limit} is the limit."
    return Failure("stage_stalled", detail, hint, retryable=True)


def speaks_of_memory(tail: list[str]) -> bool:
    """Whether the last lines of a log say that memory ran out."""
    text = "\n".join(tail).lower()
    return any(sign in text for sign in _MEMORY_SIGNS)


def in_words(status: str) -> str:
    """A guardian's word for how a process ended."""
    kind, _, number = status.partition(" ")
    if kind == "signal":
        try:
            return signal.Signals(int(number)).name
        except ValueError:
            return f"signal {number}"
    return f"exit code {number}"
