"""The worker's end of the stage parent (ADR 0015): processes that begin with everything imported.

It may fail in any way, and refuses whatever would differ from a new process. Then there is a line in the log, and a
new process is started.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from steerboard.platform.processes.public_environment import public_environment
from steerboard.platform.settings import Settings
from steerboard.platform.storage import scratch
from steerboard_contracts.guardian import Terms
from steerboard_workers.cpu_threads import THREAD_VARIABLES
from steerboard_workers.stage_parent.footing import footing
from steerboard_workers.stage_parent.identity import MARK, MARK_ROOM, TITLE_ROOM
from steerboard_workers.supervisor.guardians import ForkedGuardian

log = logging.getLogger(__name__)

# To import everything takes seconds, on a crowded machine many; to fork takes none.
_FIRST_PATIENCE_SECONDS, _PATIENCE_SECONDS = 120.0, 10.0
_BACKLOG = 64


class StageParent:
    """The stage parent of this process, or one that several workers share. For any thread. One that this process has
    started ends with it, or when it is closed; what it has forked does not."""

    def __init__(self, variables: dict[str, str] | None = None, *, shared: Path | None = None) -> None:
        """Starts it with `variables` as its environment, unless it is `shared` and listens there. Raises OSError."""
        # Without them it is not ours to start.
        self._variables = variables if shared is None else None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        self._useful = False
        self._folder = ExitStack()
        if shared is not None:
            self.path = shared
            return
        # A socket's path must be short.
        self.path = self._folder.enter_context(scratch.folder("stages")) / "parent"
        with self._lock:
            self._start()

    def close(self) -> None:
        with self._lock:
            self._variables = None
            self._end()
        self._folder.close()

    @property
    def pid(self) -> int | None:
        """The id of one that this process has started, while it runs."""
        with self._lock:
            return self._process.pid if self._process is not None and self._process.poll() is None else None

    def fork(
        self,
        command: list[str],
        directory: Path,
        variables: dict[str, str],
        terms: Terms,
        standard: tuple[int, int, int],
        others: Sequence[int],
    ) -> ForkedGuardian | None:
        """The equal of `StartedGuardian`; it continues at the first deadline. None if there is no stage parent."""
        self._take_threads({name: variables[name] for name in THREAD_VARIABLES if name in variables})
        request = {
            "command": command,
            "directory": str(directory),
            "environment": variables,
            # What a credential opens is asked for when it is used, never at an import.
            "late": [MARK, *(variables.keys() - public_environment(variables).keys())],
            "terms": terms.json(),
            "descriptors": [0, 1, 2, *others],
            "footing": footing(),
        }
        connection = socket.socket(socket.AF_UNIX)
        try:
            pid = self._ask(connection, request, [*standard, *others])
            return ForkedGuardian(pid, connection)
        except (OSError, ValueError) as error:
            connection.close()
            log.warning("a process is started without the stage parent: %s", error)
            self._revive(hangs=isinstance(error, TimeoutError))
            return None

    def _ask(self, connection: socket.socket, request: dict[str, Any], descriptors: Sequence[int]) -> int:
        """Raises OSError and ValueError."""
        connection.settimeout(_PATIENCE_SECONDS if self._useful else _FIRST_PATIENCE_SECONDS)
        connection.connect(str(self.path))
        data = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [data], descriptors)
        connection.sendall(data[sent:])
        answer = b""
        while not answer.endswith(b"\n"):
            more = connection.recv(4096)
            if not more:
                raise ConnectionError("it has ended")
            answer += more
        said = json.loads(answer)
        if "pid" not in said:
            if said["stale"]:
                with self._lock:
                    self._end()
            raise ValueError(said["refused"])
        self._useful = True
        return int(said["pid"])

    # -- the process ------------------------------------------------------------------------------------------------

    def _take_threads(self, wanted: dict[str, str]) -> None:
        """Start again where it has another number of threads: OpenMP and MKL read it when they are imported."""
        with self._lock:
            if self._variables is None or wanted.items() <= self._variables.items():
                return
            self._variables = self._variables | wanted
            self._end()
            self._start()

    def _revive(self, *, hangs: bool) -> None:
        """One that hangs or has ended, unless it ended by itself at its start and so would again."""
        with self._lock:
            if self._process is not None and (hangs or self._process.poll() is not None):
                if not self._useful and (self._process.returncode or 0) > 0:
                    return
                self._end()
            if self._process is None:
                self._start()

    def _start(self) -> None:
        """The caller holds the lock."""
        if self._variables is None:
            return
        self.path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        read, self._lifeline = os.pipe2(os.O_CLOEXEC)
        try:
            listener.bind(str(self.path))
            listener.listen(_BACKLOG)
            self._useful = False
            self._process = subprocess.Popen(
                [sys.executable, "-m", "steerboard_workers.stage_parent", str(listener.fileno()), TITLE_ROOM],
                stdin=read,
                pass_fds=(listener.fileno(),),
                start_new_session=True,
                cwd="/",
                env=self._variables | {MARK: MARK_ROOM},
            )
        except OSError as error:
            log.warning("there is no stage parent: %s", error)
            os.close(self._lifeline)
            self._lifeline = -1
        finally:
            os.close(read)
            listener.close()

    def _end(self) -> None:
        """The caller holds the lock."""
        if self._process is None:
            return
        os.close(self._lifeline)
        self._lifeline = -1
        # It would notice by itself, but not while it imports.
        self._process.kill()
        self._process.wait()
        self._process = None


def stage_parent(settings: Settings, variables: dict[str, str]) -> StageParent | None:
    """A stage parent if the settings ask for one; the environment of what it forks is `variables`, with a mark and
    perhaps credentials."""
    if not settings.warm_start:
        return None
    try:
        return StageParent(variables, shared=settings.stage_parent)
    except OSError as error:
        log.warning("there is no stage parent: %s", error)
        return None
