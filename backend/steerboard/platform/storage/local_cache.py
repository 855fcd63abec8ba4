"""Inputs on a worker's own disk, shared by every worker of its home, and thrown away when the room is needed.

    FOLDER/KIND/KEY/         an entry: a folder of read-only files that appears whole
    FOLDER/KIND/KEY.lock     held while the entry is made, repaired or removed
    FOLDER/KIND/KEY.use      held, shared, while it is used; its time is that of the last use
    FOLDER/KIND/KEY.stamp    sizes, times and numbers of the files when their content was last verified

Both locks are the kernel's, so that those of a killed worker are gone with it. An entry is removed only by who holds
both, and taken only by who holds the first while it takes the second, so no one is left with a folder that vanishes.
filelock and fasteners do not fit for the reasons in `folder_lock`; cachetools keeps objects in memory, not folders.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

_PARTIAL = ".partial"
_SHARE = 0.5  # of what is free on the disk and what the cache has of it already


@dataclass(frozen=True)
class _Entry:
    place: Path
    key: str
    size: int
    used: float


class LocalCache:
    """A cache of `limit_mb` megabytes, by default half of the disk's free space; more only while all is in use."""

    def __init__(self, folder: Path, limit_mb: int | None = None) -> None:
        self._folder = folder
        self._limit_mb = limit_mb

    def take(
        self,
        kind: str,
        key: str,
        *,
        size: int,
        fill: Callable[[Path], None],
        intact: Callable[[Path], bool],
        holds: ExitStack,
    ) -> Path:
        """The entry's folder, which stays until `holds` is closed.

        One that is not there is made by `fill` in an empty folder, after room was made for about `size` bytes. One
        whose files have changed since they were verified is checked with `intact`, and made again if it is not.
        Raises what these two raise.
        """
        place = self._folder / kind
        place.mkdir(parents=True, exist_ok=True)
        entry = place / key
        with _locked(place / f"{key}.lock", fcntl.LOCK_EX):
            holds.enter_context(_in_use(place / f"{key}.use"))
            if entry.is_dir():
                if _unchanged(place, key):
                    return entry
                if intact(entry):
                    _stamp(place, key)
                    return entry
                log.warning("%s of the cache was damaged; it is fetched again", entry)
            self.make_room(size)
            partial = place / f".{key}{_PARTIAL}"
            shutil.rmtree(partial, ignore_errors=True)
            try:
                partial.mkdir()
                fill(partial)
                for path in _files(partial):
                    path.chmod(0o444)
                _put_in_place(partial, entry)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
            _stamp(place, key)
        self.make_room(0)
        return entry

    def make_room(self, needed: int) -> int:
        """Remove what was used longest ago and is not in use, until `needed` more bytes fit. Returns bytes freed."""
        entries = sorted(self._entries(), key=lambda entry: entry.used)
        held = sum(entry.size for entry in entries)
        limit = self._limit(held)
        freed = 0
        for entry in entries:
            if held - freed + needed <= limit:
                break
            freed += entry.size if _remove(entry) else 0
        if held - freed + needed > limit:
            log.warning("the cache outgrows its %d MB: nothing more can be evicted now", limit >> 20)
        return freed

    def _limit(self, held: int) -> int:
        if self._limit_mb is not None:
            return self._limit_mb << 20
        return int(_SHARE * (shutil.disk_usage(self._folder).free + held)) if self._folder.exists() else 0

    def _entries(self) -> Iterator[_Entry]:
        """Lists what a killed worker began, too, as never used."""
        for folder in self._folder.glob("*/*/"):
            place, name = folder.parent, folder.name
            partial = name.startswith(".") and name.endswith(_PARTIAL)
            key = name[1 : -len(_PARTIAL)] if partial else name
            try:
                size = sum(path.stat().st_size for path in _files(folder))
                used = 0.0 if partial else (place / f"{key}.use").stat().st_mtime
            except FileNotFoundError:  # another worker is at it
                continue
            yield _Entry(place, key, size, used)


def _put_in_place(fresh: Path, entry: Path) -> None:
    """Replaces a damaged entry, too, which others may be using: what they have opened stays, and its path is hardly
    gone."""
    if entry.exists():
        damaged = fresh.with_name(f".{entry.name}.damaged{_PARTIAL}")
        shutil.rmtree(damaged, ignore_errors=True)
        entry.rename(damaged)
        fresh.rename(entry)
        shutil.rmtree(damaged, ignore_errors=True)
    else:
        fresh.rename(entry)


def _remove(entry: _Entry) -> bool:
    """Removes the entry unless someone makes or uses it."""
    with ExitStack() as locks:
        try:
            for name in ("lock", "use"):
                locks.enter_context(_locked(entry.place / f"{entry.key}.{name}", fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        partial = entry.place / f".{entry.key}{_PARTIAL}"
        shutil.rmtree(partial, ignore_errors=True)
        folder = entry.place / entry.key
        if folder.exists():
            # Renamed first, so that it is never there in part.
            folder.rename(partial)
            (entry.place / f"{entry.key}.stamp").unlink(missing_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
    return True


@contextmanager
def _locked(path: Path, how: int) -> Iterator[int]:
    """Raises BlockingIOError if `how` is non-blocking."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _in_use(path: Path) -> Iterator[None]:
    with _locked(path, fcntl.LOCK_SH) as descriptor:
        os.utime(descriptor)
        yield
        os.utime(descriptor)


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if not path.is_dir() or path.is_symlink()]


def _state(folder: Path) -> dict[str, list[int]]:
    """What the system changes whenever anyone changes a file; the time of change cannot be set back."""
    stamps = {}
    for path in _files(folder):
        status = path.lstat()
        stamps[path.relative_to(folder).as_posix()] = [
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
        ]
    return stamps


def _stamp(place: Path, key: str) -> None:
    (place / f"{key}.stamp").write_text(json.dumps(_state(place / key)))


def _unchanged(place: Path, key: str) -> bool:
    try:
        known = json.loads((place / f"{key}.stamp").read_text())
    except (FileNotFoundError, ValueError):
        return False
    return bool(known == _state(place / key))
