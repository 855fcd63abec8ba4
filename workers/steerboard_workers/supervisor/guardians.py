"""A guardian as the process sees it that has it started: from nothing, or by a fork of the stage parent.

However it was started, its process id is no one else's until it is reaped, so its group can be killed without doubt.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from steerboard_contracts import guardian


class Guardian(ABC):
    """`pid` is its process id and that of its group."""

    pid: int

    @abstractmethod
    def wait(self) -> None:
        """Waits until it has ended. It stays to be reaped."""

    @abstractmethod
    def kill_group(self) -> None:
        """kill -9, without its help: it may be frozen, or dead with others of its group still alive."""

    @abstractmethod
    def reap(self) -> None:
        """Give its process id up. Once, after its end."""


class StartedGuardian(Guardian):
    """A child of this process."""

    def __init__(
        self,
        command: list[str],
        directory: Path,
        variables: dict[str, str],
        terms: guardian.Terms,
        standard: tuple[int, int, int],
        others: Sequence[int],
    ) -> None:
        """`standard`: its descriptors 0 to 2; the first of `others` is for its status."""
        stdin, stdout, stderr = standard
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, str(others[0]), terms.json(), *command],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=others,
            start_new_session=True,
            cwd=directory,
            env=variables,
        )
        self.pid = self._process.pid

    def wait(self) -> None:
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def kill_group(self) -> None:
        kill_group(self.pid)

    def reap(self) -> None:
        self._process.wait()


class ForkedGuardian(Guardian):
    """A child of the stage parent, which reaps it when `connection` is closed."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        """Raises OSError."""
        self.pid = pid
        self._connection = connection
        self._process = os.pidfd_open(pid)

    def wait(self) -> None:
        _wait(self._process, select.POLLIN, None)

    def kill_group(self) -> None:
        ended = _wait(self._process, select.POLLIN, 0)
        orphaned = _wait(self._connection.fileno(), select.POLLRDHUP, 0)
        # Where no one holds the process id any more it may be another's; what is left bears the run's mark.
        if not (ended and orphaned):
            kill_group(self.pid)

    def reap(self) -> None:
        self._connection.close()
        os.close(self._process)


def kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _wait(descriptor: int, event: int, milliseconds: int | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(milliseconds))
