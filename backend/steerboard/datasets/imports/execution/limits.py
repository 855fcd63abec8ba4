"""What reading a file, or cleaning a dataset, may take. The system refuses what goes beyond, and the work ends by an
error of its own."""

from __future__ import annotations

import re
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from sqlalchemy.exc import DBAPIError

from steerboard_files.errors import TooMuchWork

_NO_TIME = 1e-3


def bound_memory(megabytes: int) -> None:
    """Let this process write, on Linux, to that much more memory than it has already. Child processes inherit it, and
    set their own."""
    with suppress(OSError, ValueError):
        match = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if match:
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            resource.setrlimit(resource.RLIMIT_DATA, (int(match[1]) * 1024 + (megabytes << 20), hard))


def ran_out_of_memory(error: Exception) -> bool:
    """Whether the error is that of Python, or that of the database's client, whose errors then have no state from the
    server."""
    if isinstance(error, MemoryError):
        return True
    cause = error.orig if isinstance(error, DBAPIError) else None
    return cause is not None and getattr(cause, "sqlstate", None) is None and "memory" in str(cause)


@contextmanager
def bounded_time(seconds: float, timed_out: Callable[[float], TooMuchWork]) -> Iterator[None]:
    """Limits the block's time; for the main thread only. Raises what `timed_out` makes of the seconds, wherever the
    block is by then, also where the block makes another error of it, as a database's driver does that was opening a
    connection."""
    is_over = False

    def over(_signal: int, _frame: FrameType | None) -> None:
        nonlocal is_over
        is_over = True
        raise timed_out(seconds)

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, _NO_TIME))
    try:
        yield
    except Exception as error:
        if is_over and not isinstance(error, TooMuchWork):
            raise timed_out(seconds) from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
