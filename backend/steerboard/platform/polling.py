"""Threads of the API process that take what is due, one piece after another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

_POLL_SECONDS = 2.0


class PollingThreads:
    """`threads` threads that call `work`, at once again after it did something, otherwise after a pause.

    `work` is given the event that is set when it shall stop, and returns whether there was something to do. What it
    raises is logged, and it is called again.
    """

    def __init__(self, name: str, threads: int, work: Callable[[threading.Event], bool]) -> None:
        self._name = name
        self._work = work
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._poll, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, wait_seconds: float = 3.0) -> None:
        """What takes longer than that is taken up again after its lease."""
        self._stopping.set()
        until = time.monotonic() + wait_seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))

    def _poll(self) -> None:
        while not self._stopping.is_set():
            try:
                worked = self._work(self._stopping)
            except Exception:
                log.exception("%s failed and will be retried", self._name)
                worked = False
            if not worked:
                self._stopping.wait(_POLL_SECONDS)
