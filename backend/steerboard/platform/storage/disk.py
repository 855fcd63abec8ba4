"""Files whose writing stops before the disk is full (`steerboard_contracts.files.disk`), and the database's disk."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from steerboard.platform.settings import Settings, get_settings
from steerboard_contracts.errors import NoSpaceLeft
from steerboard_contracts.files.disk import FULL, Disk

_BUFFER = 1 << 20
# Space above the reserve at which we start to warn.
SOON_BYTES = 32 << 20
_DATABASE = "the database"
# PostgreSQL's SQLSTATE disk_full.
_DISK_FULL = "53100"


def disk_of(folder: Path, what: str) -> Disk:
    return Disk(folder, what, get_settings().disk_reserve_mb)


def database_disk(home: Path | None = None) -> Disk | None:
    """The disk of the embedded database; None where the database has a server of its own, whose disk no one sees."""
    data = (home or get_settings().home) / "postgres"
    return disk_of(data, _DATABASE) if data.is_dir() else None


def disks(settings: Settings) -> list[Disk]:
    """The disks of this machine that the API writes to: of the home, the files of the store, and uploads on their
    way."""
    folders = [settings.home, Path(tempfile.gettempdir())]
    if settings.artifact_url.startswith("file://"):
        folders.append(Path(settings.artifact_url.removeprefix("file://")))
    whats = ("the home", "uploads", "the file store")
    return [Disk(folder, what, settings.disk_reserve_mb) for folder, what in zip(folders, whats, strict=False)]


def need_room(settings: Settings) -> None:
    """Raises `NoSpaceLeft` when large writes are refused, or soon will be."""
    for disk in disks(settings):
        disk.need(SOON_BYTES)


def create_file(path: Path, what: str, *, private: bool = False) -> BinaryIO:
    """A new or emptied file. Its writes raise `NoSpaceLeft` rather than touch the reserve of its disk.

    `private`: no one but its owner can read it, whatever the umask."""
    mode = 0o600 if private else 0o666
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    if private:
        os.fchmod(descriptor, mode)
    return bounded(descriptor, disk_of(path.parent, what))


def bounded(descriptor: int, disk: Disk) -> BinaryIO:
    """Takes an open file over, for writing and reading."""
    return cast(BinaryIO, io.BufferedRandom(_Bounded(descriptor, disk), _BUFFER))


class _Bounded(io.FileIO):
    def __init__(self, descriptor: int, disk: Disk) -> None:
        super().__init__(descriptor, "w+b")
        self._disk = disk

    def write(self, data: Any, /) -> int:
        self._disk.need(memoryview(data).nbytes)
        try:
            return super().write(data)
        except OSError as error:
            if error.errno in FULL:
                raise self._disk.full() from error
            raise


def database_is_full(error: BaseException) -> bool:
    """Whether it refused a statement because the disk is full. `error`: its driver's, or SQLAlchemy's around that."""
    return getattr(getattr(error, "orig", error), "sqlstate", None) == _DISK_FULL


def no_space_for_rows() -> NoSpaceLeft:
    return Disk(Path("/"), _DATABASE).full()


@contextmanager
def full_disk_named(disk: Disk) -> Iterator[None]:
    """What someone else's code writes there: a full disk becomes `NoSpaceLeft`."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise disk.full() from error
        raise
