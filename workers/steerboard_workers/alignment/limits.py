"""A limit for Python code that others have written, such as a chat template, and that may never come to an end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# Repeatedly, in case the interrupted code swallows the first error.
_AGAIN_SECONDS = 0.5


@contextmanager
def computing_at_most(seconds: float, error: Callable[[], Exception]) -> Iterator[None]:
    """Raises `error()` inside the block when the process has computed for so many seconds, however slow or busy the
    machine is. Does nothing outside of the main thread, the only one that can be interrupted; and not before a call
    into a library returns, so the parent process still needs its own limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_: int, __: FrameType | None) -> None:
        raise error()

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
