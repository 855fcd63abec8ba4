"""The processes in which requests have files imported and large datasets cleaned (`jobs`), so that no hostile file, and
no large one, is parsed in the API. They run under guardians and end with it."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from typing import IO, Any

from steerboard.datasets import hooks
from steerboard.datasets.imports.execution.faults import FAULTS
from steerboard.datasets.imports.execution.jobs import Done, Job
from steerboard.platform.processes.child_process import Guarded, GuardedSpec
from steerboard.platform.settings import Settings

AT_ONCE = 4
# The process keeps its time itself, and can name the place; this is for one that is stuck.
_GRACE_SECONDS = 60.0


class ImportProcesses:
    """Made with the app. The first process starts with the first import; one stays for the next."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._idle: _Process | None = None

    def run(self, settings: Settings, job: Job, upload: IO[bytes] | None) -> Any:
        """Its answer. Waits for its end. Raises what the job raises, and the `FAULTS` of its kind of work: where the
        process dies, and for what takes more than the settings allow."""
        with self._free:
            process = self._take() or _Process(settings)
            try:
                done = process.ask(job, upload, settings.import_seconds + _GRACE_SECONDS)
            except BaseException:
                process.stop()
                raise
            # A large file has used memory, and made its process nice.
            self._leave(process, reuse=not job.large and not done.spent)
        if done.failure is not None:
            raise done.failure.error()
        return done.answer

    def warm(self, settings: Settings) -> None:
        """Have a process ready before the first import."""
        process = _Process(settings)
        self._leave(process, reuse=True)

    def close(self) -> None:
        process = self._take()
        if process is not None:
            process.stop()

    def _take(self) -> _Process | None:
        with self._lock:
            process, self._idle = self._idle, None
        if process is None or process.lives:
            return process
        process.stop()
        return None

    def _leave(self, process: _Process, *, reuse: bool) -> None:
        with self._lock:
            if reuse and self._idle is None:
                self._idle = process
                return
        process.stop()


class _Process:
    def __init__(self, settings: Settings) -> None:
        self._channel, remote = socket.socketpair()
        folder = settings.home / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        with remote:
            spec = GuardedSpec(
                name="the process of imports",
                command=[sys.executable, "-m", hooks.import_process(), "requests", str(remote.fileno())],
                log=folder / "imports.log",
                # A transaction that is cut off is rolled back; there is nothing to do in order.
                stop=[(signal.SIGKILL, 5.0)],
                inherit=[remote.fileno()],
            )
            self._process = Guarded(spec)
        self._answers = self._channel.makefile("rb")

    @property
    def lives(self) -> bool:
        return self._process.status() is None

    def ask(self, job: Job, upload: IO[bytes] | None, seconds: float) -> Done:
        """Raises its work's `interrupted` when the process ends, or the time does, before it answers."""
        self._channel.settimeout(seconds)
        try:
            if upload is None:
                self._channel.sendall(b"\0")
            else:
                upload.seek(0)
                socket.send_fds(self._channel, [b"\0"], [upload.fileno()])
            self._channel.sendall(job.model_dump_json().encode() + b"\n")
            answer = self._answers.readline()
        except OSError:
            answer = b""
        if not answer.endswith(b"\n"):
            raise FAULTS[job.work].interrupted()
        return Done.model_validate_json(answer)

    def stop(self) -> None:
        self._answers.close()
        self._channel.close()
        self._process.stop()
