"""Who works in a folder, and who wants it gone: a lock of the kernel on the folder itself, gone with its holder.

filelock shares a lock through a SQLite database only and takes no folder; a lock of fasteners belongs to the process,
so that two of its threads have it at the same time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Any number may. The folder is made if need be; waits while it is being removed, and then makes it again."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if not _is_still_there(folder, descriptor):
                continue
            yield
            return
        finally:
            os.close(descriptor)


@contextmanager
def alone_in(folder: Path) -> Iterator[bool]:
    """False when someone works in it, or it is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = _is_still_there(folder, descriptor)
    except BlockingIOError:
        alone = False
    try:
        yield alone
    finally:
        os.close(descriptor)


def _is_still_there(folder: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except FileNotFoundError:
        return False
