"""Events from a process that asks an endpoint to its supervisor."""

from __future__ import annotations

import threading
from typing import TextIO

from steerboard_contracts.stage.events import Log, StageEvent

_LONGEST_LINE = 500


class StageEventWriter:
    """Events for the supervisor, one a line, from any thread."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def say(self, event: StageEvent) -> None:
        with self._lock:
            self._out.write(event.model_dump_json() + "\n")
            self._out.flush()

    def pass_on(self, line: str) -> None:
        """An event of another process, with its line end."""
        with self._lock:
            self._out.write(line)
            self._out.flush()

    def warn(self, line: str) -> None:
        self.say(Log(level="warning", message=line[:_LONGEST_LINE]))
