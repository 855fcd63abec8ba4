"""Free space on a disk, and the reserve of it that no large write may touch.

PostgreSQL stops when it cannot write its log, and everything with it. So every writer of something large (uploads,
artifacts, checkpoints, backups, rows) checks here as it goes, and gives up while the database still has room.
"""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from steerboard_contracts.errors import NoSpaceLeft

FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
_SHARE = 0.05
_MOST_RESERVE = 2 << 30


@dataclass(frozen=True)
class Disk:
    """The disk that `folder` is on, or would be. `what` names it in messages, which show no paths of the server.

    `reserve_mb`: by default a twentieth of the disk, at most 2 GB.
    """

    folder: Path
    what: str
    reserve_mb: int | None = None

    @property
    def reserve(self) -> int:
        """The reserve in bytes."""
        return self._look()[1]

    @property
    def room(self) -> int:
        """Bytes that may still be written; negative when the reserve itself is being used."""
        free, reserve = self._look()
        return free - reserve

    def need(self, size: int) -> None:
        """Raises `NoSpaceLeft` unless `size` more bytes leave the reserve untouched."""
        free, reserve = self._look()
        if free - reserve < size:
            raise self.full(f"{free >> 20:,} MB are free, of which {reserve >> 20:,} MB are kept for the database")

    def full(self, reason: str = "the disk or a quota is full") -> NoSpaceLeft:
        return NoSpaceLeft(
            f"There is no space left for {self.what}: {reason}.",
            hint="Free some space on its disk (`steerboard gc` helps), then try again; `steerboard doctor` shows what "
            "is free.",
        )

    def _look(self) -> tuple[int, int]:
        there = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        usage = shutil.disk_usage(there)
        given = None if self.reserve_mb is None else self.reserve_mb << 20
        return usage.free, int(min(_SHARE * usage.total, _MOST_RESERVE)) if given is None else given


def sync_folder(path: Path) -> None:
    """Makes a rename inside `path` survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
