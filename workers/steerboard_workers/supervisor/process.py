"""A process under a guardian as its owner sees it: heard through pipes, ended as a whole; and a stage as such."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from steerboard.platform.processes.public_environment import public_environment
from steerboard_contracts import guardian
from steerboard_contracts.stage.events import STAGE_EVENT, Failed, Log, Paused, StageEvent, Succeeded
from steerboard_workers.cpu_threads import THREAD_VARIABLES
from steerboard_workers.stage_parent.identity import MARK
from steerboard_workers.supervisor.allocation import allocation
from steerboard_workers.supervisor.guardians import Guardian, StartedGuardian
from steerboard_workers.supervisor.warm_start import StageParent

# A line of events holds a few figures; a line of a log may be a progress bar without a line end.
_LINE_BYTES = 1 << 20
_QUEUE_LINES = 50_000
# How long a guardian has to end its process before that is done without it.
KILL_SECONDS = 5.0
_OF_HUB = ("HF_", "HUGGING_FACE_")


class GuardedProcess:
    """A process under a guardian, which dies with this one, and is heard line by line. `status` is what its guardian
    reported of its end, `tail` the last lines of its log.

    Threads read both pipes at once, so a process that floods one never stalls on the other.
    """

    def __init__(
        self,
        command: list[str],
        directory: Path,
        variables: dict[str, str],
        *,
        memory: int,
        allocated: int = 0,
        inherits: Sequence[int] = (),
        parent: StageParent | None = None,
    ) -> None:
        """`memory` and `allocated` in bytes: see the guardian. `variables` are all of its environment, `inherits` all
        of its descriptors but the standard ones. With a `parent` it is forked, if that can be."""
        heartbeat, self._heartbeat = os.pipe2(os.O_CLOEXEC)
        words, stdout = os.pipe2(os.O_CLOEXEC)
        log, stderr = os.pipe2(os.O_CLOEXEC)
        status_read, status_write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._heartbeat, False)
        self._lock = threading.Lock()
        self.started = time.monotonic()
        terms = guardian.Terms(memory=memory, allocated=allocated, leased=True)
        standard = (heartbeat, stdout, stderr)
        others = (status_write, *inherits)
        try:
            made: Guardian | None = None
            if parent is not None:
                made = parent.fork(command, directory, variables, terms, standard, others)
            self.warm = made is not None
            self._guardian = made or StartedGuardian(command, directory, variables, terms, standard, others)
        except BaseException:
            for descriptor in (self._heartbeat, words, log, status_read):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (*standard, status_write):
                os.close(descriptor)
        self.extend(guardian.now() + guardian.FIRST_DEADLINE_SECONDS)
        self.mark = variables[MARK]
        self.tail: list[str] = []
        self.status: str | None = None
        self.killed = False
        self._ended = threading.Event()
        self._readers = [
            threading.Thread(target=self._read_words, args=(words,), name="process-words", daemon=True),
            threading.Thread(target=self._read_log, args=(log,), name="process-log", daemon=True),
            threading.Thread(target=self._read_status, args=(status_read,), name="process-status", daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def hear(self, line: bytes) -> None:
        """What it wrote to its standard output. Called from a thread."""
        raise NotImplementedError

    def overhear(self, text: str) -> None:
        """A line of its log. Called from a thread."""

    @property
    def pid(self) -> int:
        """The guardian's process id, which is that of the whole group."""
        return self._guardian.pid

    def extend(self, deadline: float) -> None:
        """Tell the guardian that the lease is good until `deadline` (CLOCK_BOOTTIME seconds)."""
        with self._lock, contextlib.suppress(OSError):
            if self._heartbeat >= 0:
                os.write(self._heartbeat, f"{deadline:.3f}\n".encode())

    def kill(self) -> None:
        """End it and all its descendants. Returns immediately; `ended` is set once they are gone."""
        self.killed = True
        with self._lock:
            if self._heartbeat >= 0:
                os.close(self._heartbeat)
                self._heartbeat = -1

    def kill_now(self) -> None:
        """The whole group, without the guardian's help: it may be frozen, or dead with others still alive."""
        self._guardian.kill_group()

    def ended(self, timeout: float) -> bool:
        """Whether the guardian is gone, waiting up to `timeout` seconds for it."""
        return self._ended.wait(timeout)

    def join_readers(self, seconds: float) -> None:
        """Wait, up to so long for each of its pipes, until all of its output is read."""
        for reader in self._readers:
            reader.join(timeout=seconds)

    def end(self) -> float:
        """Kill what is left of it, if need be without the guardian's help, and `finish`."""
        self.kill()
        if not self.ended(KILL_SECONDS):
            self.kill_now()
        return self.finish()

    def finish(self) -> float:
        """Clear away what may be left of the group, read the last words. Returns its wall seconds."""
        self._ended.wait()
        # Before the guardian is reaped its id cannot be anyone else's.
        self.kill_now()
        self._guardian.reap()
        kill_marked(self.mark)
        self.join_readers(5.0)
        wall = time.monotonic() - self.started
        self.kill()
        return wall

    def _read_status(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as pipe:
            _started, *ends = pipe.read().decode().splitlines() or [""]
            self.status = ends[0] if ends else None
        self._guardian.wait()
        self._ended.set()

    def _read_words(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as pipe:
            while line := pipe.readline(_LINE_BYTES):
                self.hear(line)

    def _read_log(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as pipe:
            while line := pipe.readline(_LINE_BYTES):
                # What a bar without line ends wrote over itself is not worth keeping.
                text = line.decode(errors="replace").rstrip().rpartition("\r")[2]
                if text:
                    self.tail = [*self.tail[-19:], text]
                    self.overhear(text)


class StageProcess(GuardedProcess):
    """`events` yields the stage's events, `result` is its last one. When the supervisor is slower than the stage for
    long, the stage waits."""

    def __init__(
        self,
        directory: Path,
        *,
        run_id: str,
        attempt: int,
        threads: int,
        memory: int,
        devices: list[str],
        launcher: Sequence[str] = (),
        command: list[str] | None = None,
        variables: dict[str, str] | None = None,
        parent: StageParent | None = None,
    ) -> None:
        """`launcher`: see `stage_command`. `command`: another process than a stage's, and the `variables` that it alone
        gets. `parent`: of a stage that is one process of this Python."""
        self.events: queue.Queue[StageEvent] = queue.Queue(_QUEUE_LINES)
        self.result: Succeeded | Paused | Failed | None = None
        super().__init__(
            command or stage_command(directory, launcher),
            directory,
            environment(f"{run_id}:{attempt}", threads, devices) | (variables or {}),
            memory=memory,
            # CUDA's address space is unrelated to memory in use.
            allocated=0 if devices else memory,
            parent=None if launcher or command else parent,
        )

    def hear(self, line: bytes) -> None:
        try:
            event = STAGE_EVENT.validate_json(line)
        except ValidationError:
            self.events.put(Log(level="warning", message=line.decode(errors="replace").rstrip()))
            return
        if isinstance(event, Failed) and isinstance(self.result, Failed):
            return  # of several processes the first to fail knows why; the others miss it
        if isinstance(event, Succeeded | Paused | Failed):
            self.result = event
        else:
            self.events.put(event)

    def overhear(self, text: str) -> None:
        self.events.put(Log(message=text))


def stage_command(directory: Path, launcher: Sequence[str] = (), python: Path | None = None) -> list[str]:
    """One process, or as many as `launcher` (options of Python) starts; of another Python than this one, if named."""
    return [str(python or sys.executable), *launcher, "-m", "steerboard_workers.stages", str(directory)]


def environment(mark: str, threads: int, devices: list[str]) -> dict[str, str]:
    """The worker's environment without its secrets, with the run's mark, threads and devices."""
    clean = public_environment()
    clean[MARK] = mark
    clean["PYTHONUNBUFFERED"] = "1"
    clean |= dict.fromkeys(THREAD_VARIABLES, str(threads))
    if not devices:
        clean = allocation() | clean
    else:
        # Counted as NVML and nvidia-smi count them, so that what is seen of a device is of the one that works.
        clean["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        clean["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    return clean


def hub_variables() -> dict[str, str]:
    """The variables of runs that ask the hub: its settings, with the worker's token."""
    return {name: value for name, value in os.environ.items() if name.startswith(_OF_HUB)}


def kill_marked(mark: str) -> int:
    """Kill every process of this machine whose environment carries `mark`, or any attempt's when it ends in `:`.

    The last resort, for descendants in sessions of their own whose guardian was killed. Returns how many.
    """
    wanted = f"{MARK}={mark}".encode()
    killed = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            variables = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(value == wanted or (mark.endswith(":") and value.startswith(wanted)) for value in variables):
            with contextlib.suppress(OSError):
                os.kill(int(entry), signal.SIGKILL)
                killed += 1
    return killed
