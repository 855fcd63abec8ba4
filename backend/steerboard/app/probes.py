"""Asking whether a service answers, without ever waiting longer than a probe may."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

# As long as a probe of Kubernetes would wait for us, less a little.
PATIENCE_SECONDS = 3.0


class Probe:
    """`ask` returns or raises in a thread of its own, of which there is one at a time: a service that hangs costs one
    thread, however often it is asked for. Its result is kept for `keep_seconds`."""

    def __init__(self, ask: Callable[[], None], *, keep_seconds: float = 1.0) -> None:
        self._ask = ask
        self._keep = keep_seconds
        self._lock = threading.Lock()
        self._asked = 0.0
        self._said: Future[bool] | None = None

    async def answers(self) -> bool:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._asking()), PATIENCE_SECONDS)
        except TimeoutError:
            return False

    def _asking(self) -> Future[bool]:
        with self._lock:
            answer = self._said
            if answer is None or (answer.done() and time.monotonic() - self._asked >= self._keep):
                answer = self._said = Future()
                # So no waiter can cancel it.
                answer.set_running_or_notify_cancel()
                self._asked = time.monotonic()
                # A daemon: one that hangs must not keep the process from ending.
                threading.Thread(target=self._run, args=(answer,), name="probe", daemon=True).start()
            return answer

    def _run(self, answer: Future[bool]) -> None:
        try:
            self._ask()
        except Exception:
            answer.set_result(False)
        else:
            answer.set_result(True)
