"""Time limits for what cannot be interrupted: a thread that gives the process up when a deadline passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

from steerboard_contracts.errors import SteerboardError

GiveUp = Callable[[SteerboardError], None]
"""Reports what happened and ends the process: code that hangs in a library receives no exception."""


class EngineFailed(SteerboardError):
    """An engine that hangs, or whose processes died. Another attempt continues after the finished rows."""

    code = "engine_failed"
    title = "The engine stopped working"
    retryable = True


_LOOK_SECONDS = 1.0


class Watchdog:
    """Calls `give_up` within `limit` once the limit has passed since it began, or since the last `beat`, and soon after
    one of the processes that the limit is about has died."""

    def __init__(self, give_up: GiveUp) -> None:
        self._give_up = give_up
        self._changed = threading.Condition()
        self._what = ""
        self._seconds = 0.0
        self._deadline: float | None = None
        self._processes: Sequence[BaseProcess] = ()
        self._closed = False
        threading.Thread(target=self._watch, name="engine-watchdog", daemon=True).start()

    @contextmanager
    def limit(self, seconds: float, what: str, processes: Sequence[BaseProcess] = ()) -> Iterator[None]:
        """`what` did not happen in time, in words for people. Without `processes` it can never happen."""
        with self._changed:
            self._what, self._seconds, self._processes = what, seconds, processes
            self._deadline = time.monotonic() + seconds
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadline = None

    def beat(self) -> None:
        """There was a step."""
        with self._changed:
            if self._deadline is not None:
                self._deadline = time.monotonic() + self._seconds

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._closed:
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if left is not None and (left <= 0 or self._died()):
                    break
                self._changed.wait(None if left is None else min(left, _LOOK_SECONDS))
            if self._closed:
                return
            what = "a process of the engine died" if self._died() else f"{self._what} within {self._seconds:g} seconds"
            self._deadline = None
        self._give_up(
            EngineFailed(
                what,
                hint="Check the run's log and the device; vllm.load_seconds and vllm.step_seconds are the limits.",
            )
        )

    def _died(self) -> bool:
        return not all(process.is_alive() for process in self._processes)
