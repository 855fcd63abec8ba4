"""How long a test waits for what is to happen. Where it does, this costs nothing; other work may have most of a
machine."""

import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

PATIENCE = 300.0  # seconds

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    complaint: str | Callable[[], str] = "it did not happen",
    *,
    seconds: float = PATIENCE,
    pause: float = 0.02,
    process: subprocess.Popen[Any] | None = None,
) -> T:
    """The first true value of `condition`, looked at every `pause` seconds. Fails with `complaint` after `seconds`, and
    when `process`, which is to bring it about, has ended before."""
    deadline = time.monotonic() + seconds
    while True:
        ended = process is not None and process.poll() is not None
        if value := condition():
            return value
        if ended or time.monotonic() > deadline:
            raise AssertionError(complaint if isinstance(complaint, str) else complaint())
        time.sleep(pause)
