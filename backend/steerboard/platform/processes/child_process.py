"""The parent's side of a guardian: start a process that cannot outlive us, and stop it in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from steerboard.platform.processes.public_environment import public_environment
from steerboard_contracts import guardian
from steerboard_contracts.errors import SteerboardError


class ServerFailed(SteerboardError):
    """A process that should run did not start, or ended."""

    code = "server_failed"
    title = "A server could not be started"


@dataclass
class GuardedSpec:
    """`stop`: [(signal, seconds to wait)] in order. `remove`: stale files, removed once `lock` is held. `public`: it
    runs what users have brought, and gets none of our credentials. `inherit`: open descriptors that it gets under the
    same numbers."""

    name: str
    command: list[str]
    log: Path
    stop: list[tuple[int, float]]
    death_signal: int = signal.SIGKILL
    lock: Path | None = None
    lock_seconds: float = 20.0
    remove: list[Path] = field(default_factory=list)
    cwd: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    public: bool = False
    inherit: list[int] = field(default_factory=list)


class Guarded:
    """A running process under its guardian. Ends with us, however we end."""

    def __init__(self, spec: GuardedSpec) -> None:
        """Starts it. Raises `ServerFailed` (`home_in_use` when another process holds the lock)."""
        self.spec = spec
        terms = guardian.Terms(
            stop=[(int(number), seconds) for number, seconds in spec.stop],
            death_signal=int(spec.death_signal),
            lock=str(spec.lock) if spec.lock else None,
            lock_seconds=spec.lock_seconds,
            remove=[str(path) for path in spec.remove],
        )
        status, reports = os.pipe()
        self._status = os.fdopen(status)
        try:
            with spec.log.open("ab") as log:
                self._guardian = subprocess.Popen(
                    [sys.executable, "-I", "-S", guardian.__file__, str(reports), terms.json(), *spec.command],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(reports, *spec.inherit),
                    cwd=spec.cwd,
                    env=(public_environment() if spec.public else dict(os.environ)) | spec.env,
                )
        finally:
            os.close(reports)
        started, _, pid = self._status.readline().partition(" ")
        if not pid:
            self._guardian.wait()
            self._status.close()
            if started.strip() == "locked":
                raise ServerFailed(
                    f"{spec.name} of this home is already running",
                    code="home_in_use",
                    hint="Stop the other `steerboard up`, or use another --home.",
                )
            raise ServerFailed(f"{spec.name} did not start", hint=f"Its log: {spec.log}")
        self.pid = int(pid)
        self._ended: int | None = None

    def status(self) -> int | None:
        """Exit status of the process once it has ended; that of a shell where a signal ended it."""
        if self._ended is None and self._guardian.poll() is not None:
            how, _, number = self._status.readline().partition(" ")
            self._ended = int(number) if how == "exit" else 128 + int(number or signal.SIGKILL)
            self._status.close()
        return self._ended

    def stop(self) -> None:
        """Stop in order and wait for the end."""
        assert self._guardian.stdin is not None
        with suppress(OSError):
            self._guardian.stdin.write(b"stop\n")
            self._guardian.stdin.flush()
        self._guardian.wait()
        with suppress(OSError):
            self._guardian.stdin.close()
        self.status()

    def failure(self) -> ServerFailed:
        """What to raise when it ended without being asked to: with the last lines of its log."""
        return ServerFailed(
            f"{self.spec.name} ended with status {self.status()}",
            hint=f"{log_tail(self.spec.log)}\nLog: {self.spec.log}",
        )


def log_tail(path: Path, lines: int = 8) -> str:
    """The last lines of a log, for messages."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""
