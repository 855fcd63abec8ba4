"""Temporary files and folders of this process. They go when it is done with them; those of a killed one are swept.

A folder is locked for as long as its process lives: a lock of the kernel, which ends with its holder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from steerboard.platform.storage.disk import bounded, disk_of

_PREFIX = "steerboard-tmp-"
# Between the making of a folder and its lock; far longer than that takes.
_UNLOCKED_SECONDS = 60.0


@contextmanager
def folder(purpose: str) -> Iterator[Path]:
    """An empty folder that only we can read, gone at the end."""
    path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def file(what: str) -> BinaryIO:
    """A file without a name: gone when it is closed in any way. `what` it holds is named when its disk is full."""
    descriptor, path = tempfile.mkstemp(prefix=_PREFIX)
    os.unlink(path)
    return bounded(descriptor, disk_of(Path(path).parent, what))


def sweep() -> int:
    """Remove what processes of this user left behind when they were killed. Returns how many."""
    swept = 0
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            swept += _swept(path)
    return swept


def _swept(path: Path) -> bool:
    status = path.lstat()
    if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _UNLOCKED_SECONDS:
        return False
    if stat.S_ISREG(status.st_mode):  # killed between making it and taking its name away
        path.unlink()
        return True
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
        return True
    finally:
        os.close(descriptor)
