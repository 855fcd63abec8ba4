"""The parent's side of a guardian: start a process that cannot outlive us, and stop it in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steerboard.platform.processes import guardian
from steerboard.platform.processes.public_environment import public_environment
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
        document = {
            "command": spec.command,
            "log": str(spec.log),
            "stop": [list(step) for step in spec.stop],
            "death_signal": int(spec.death_signal),
            "lock": str(spec.lock) if spec.lock else None,
            "lock_seconds": spec.lock_seconds,
            "remove": [str(path) for path in spec.remove],
            "cwd": str(spec.cwd) if spec.cwd else None,
            "env": spec.env,
            "inherit": spec.inherit,
        }
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, json.dumps(document)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=spec.inherit,
            env=public_environment() if spec.public else None,
        )
        assert self._guardian.stdout is not None
        line = self._guardian.stdout.readline()
        if not line:
            status = self._guardian.wait()
            if status == guardian.LOCKED:
                raise ServerFailed(
                    f"{spec.name} of this home is already running",
                    code="home_in_use",
                    hint="Stop the other `steerboard up`, or use another --home.",
                )
            raise ServerFailed(f"{spec.name} did not start", hint=f"Its log: {spec.log}")
        started: dict[str, Any] = json.loads(line)
        self.pid: int = started["pid"]

    @property
    def guardian_pid(self) -> int:
        return self._guardian.pid

    def status(self) -> int | None:
        """Exit status of the process once it has ended."""
        return self._guardian.poll()

    def stop(self) -> int:
        """Stop in order and wait for the end."""
        assert self._guardian.stdin is not None
        with suppress(OSError):
            self._guardian.stdin.write(b"stop")
            self._guardian.stdin.flush()
        status = self._guardian.wait()
        with suppress(OSError):
            self._guardian.stdin.close()
        return status

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
