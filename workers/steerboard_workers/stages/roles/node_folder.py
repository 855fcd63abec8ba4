"""The folder of one node's Ray: short, for sockets are in it, and there as long as someone who uses it lives."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

# Sockets have short paths, and a stage's directory may be deep.
FOLDERS = Path("/tmp")
PREFIX = "steerboard-roles-"
# Characters of a name; what else comes into a socket's path leaves no room for many.
_LETTERS = 10


class NodeFolder:
    """The folder of an attempt with this `token`, which no other has: Ray has the same folder on every node, and
    several nodes may be of one machine. Its users share a lock of the kernel, which ends with its holder; the last one
    removes it."""

    def __init__(self, token: str) -> None:
        sweep()
        self.path = FOLDERS / f"{PREFIX}{hashlib.sha256(token.encode()).hexdigest()[:_LETTERS]}"
        self._lock = _held(self.path)

    def close(self) -> None:
        os.close(self._lock)
        _remove_unused(self.path)


def sweep() -> None:
    """Remove what killed processes of this user could not."""
    for path in FOLDERS.glob(f"{PREFIX}*"):
        _remove_unused(path)


def _held(path: Path) -> int:
    """A shared lock of the folder, which is made where it is missing."""
    while True:
        path.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            fcntl.flock(lock, fcntl.LOCK_SH)
            # A sweep may have come first: then there is another folder of this name by now, or none.
            with suppress(FileNotFoundError):
                if os.path.samestat(path.lstat(), os.fstat(lock)):
                    return lock
            os.close(lock)


def _remove_unused(path: Path) -> None:
    with suppress(OSError):
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)
