"""A stage process as its supervisor sees it: started under a guardian, heard through pipes, ended as a whole."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from steerboard_contracts.stage import STAGE_EVENT, Failed, Log, StageEvent, Succeeded
from steerboard_workers import guardian

MARK = "STEERBOARD_STAGE"
# A line of events holds a few figures; a line of a log may be a progress bar without a line end.
_LINE_BYTES = 1 << 20
_QUEUE_LINES = 50_000
# How long a guardian has to end its stage before that is done without it.
KILL_SECONDS = 5.0
# Neither credentials nor addresses of the platform reach a stage: of its servers, its store and its collector.
_PRIVATE_PREFIXES = ("STEERBOARD_", "PG", "REDIS", "CELERY", "AWS_", "FSSPEC_", "OTEL_")
_PRIVATE = {"DATABASE_URL"}


class StageProcess:
    """`events` yields what the stage says; `status` is what its guardian said of its end.

    Threads read both pipes at once, so a stage that floods one never stalls on the other; when the supervisor is
    slower than the stage for long, the stage waits.
    """

    def __init__(
        self,
        directory: Path,
        *,
        run_id: str,
        attempt: int,
        threads: int | None,
        memory: int,
        devices: list[str],
        launcher: Sequence[str] = (),
        command: list[str] | None = None,
        variables: dict[str, str] | None = None,
    ) -> None:
        """`launcher`: see `stage_command`. `command`: another process than a stage's, and the `variables` that it alone
        is told."""
        self._heartbeat_read, self._heartbeat = os.pipe2(os.O_CLOEXEC)
        status_read, status_write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._heartbeat, False)
        self._lock = threading.Lock()
        self.mark = f"{run_id}:{attempt}"
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [
                sys.executable,
                *("-I", "-S", guardian.__file__, str(status_write), str(memory)),
                *(command or stage_command(directory, launcher)),
            ],
            stdin=self._heartbeat_read,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(status_write,),
            start_new_session=True,
            cwd=directory,
            env=environment(self.mark, threads, devices) | (variables or {}),
        )
        os.close(self._heartbeat_read)
        os.close(status_write)
        self.events: queue.Queue[StageEvent] = queue.Queue(_QUEUE_LINES)
        self.tail: list[str] = []
        self.result: Succeeded | Failed | None = None
        self.status: str | None = None
        self.killed = False
        self._readers = [
            threading.Thread(target=self._read_events, name="stage-events", daemon=True),
            threading.Thread(target=self._read_log, name="stage-log", daemon=True),
            threading.Thread(target=self._read_status, args=(status_read,), name="stage-status", daemon=True),
        ]
        self._ended = threading.Event()
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """The guardian's process id, which is that of the whole group."""
        return self._process.pid

    def extend(self, deadline: float) -> None:
        """Tell the guardian that the lease is good until `deadline` (CLOCK_BOOTTIME seconds)."""
        with self._lock, contextlib.suppress(OSError):
            if self._heartbeat >= 0:
                os.write(self._heartbeat, f"{deadline:.3f}\n".encode())

    def kill(self) -> None:
        """End the stage and all its descendants. Returns at once; `wait` tells when they are gone."""
        self.killed = True
        with self._lock:
            if self._heartbeat >= 0:
                os.close(self._heartbeat)
                self._heartbeat = -1

    def kill_now(self) -> None:
        """The whole group, without the guardian's help: it may be frozen, or dead with others still alive."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def ended(self, timeout: float) -> bool:
        """Whether the guardian is gone, waiting up to `timeout` seconds for it."""
        return self._ended.wait(timeout)

    def end(self) -> float:
        """Kill what is left of it, if need be without the guardian's help, and `finish`."""
        self.kill()
        if not self.ended(KILL_SECONDS):
            self.kill_now()
        return self.finish()

    def finish(self) -> float:
        """Clear away what may be left of the group, read the last events. Returns the stage's wall seconds."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        # Before the guardian is reaped its id cannot be anyone else's.
        self.kill_now()
        self._process.wait()
        kill_marked(self.mark)
        for reader in self._readers:
            reader.join(timeout=5)
        wall = time.monotonic() - self.started
        self.kill()
        return wall

    def _read_status(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as pipe:
            self.status = pipe.read().decode().strip() or None
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self._ended.set()

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline(_LINE_BYTES):
            try:
                event = STAGE_EVENT.validate_json(line)
            except ValidationError:
                self.events.put(Log(level="warning", message=line.decode(errors="replace").rstrip()))
                continue
            if isinstance(event, Failed) and isinstance(self.result, Failed):
                continue  # of several processes the first to fail knows why; the others miss it
            if isinstance(event, Succeeded | Failed):
                self.result = event
            else:
                self.events.put(event)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        while line := self._process.stderr.readline(_LINE_BYTES):
            # What a bar without line ends wrote over itself is not worth keeping.
            text = line.decode(errors="replace").rstrip().rpartition("\r")[2]
            if text:
                self.tail = [*self.tail[-19:], text]
                self.events.put(Log(message=text))


def stage_command(directory: Path, launcher: Sequence[str] = (), python: Path | None = None) -> list[str]:
    """One process, or as many as `launcher` (options of Python) starts; of another Python than this one, if named."""
    return [str(python or sys.executable), *launcher, "-m", "steerboard_workers.stages", str(directory)]


def environment(mark: str, threads: int | None, devices: list[str]) -> dict[str, str]:
    """The worker's environment without its secrets, with the run's mark, threads and devices."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_PRIVATE_PREFIXES) and name not in _PRIVATE
    }
    clean[MARK] = mark
    clean["PYTHONUNBUFFERED"] = "1"
    if threads:
        clean["OMP_NUM_THREADS"] = clean["MKL_NUM_THREADS"] = str(threads)
    if devices:
        # Counted as NVML and nvidia-smi count them, so that what is seen of a device is of the one that works.
        clean["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        clean["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    return clean


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
