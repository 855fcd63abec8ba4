"""A folder as a store: files appear under their names by a rename, after their content is on the disk."""

from __future__ import annotations

import datetime as dt
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from steerboard.platform.storage.disk import create_file, disk_of, full_disk_named
from steerboard.platform.storage.errors import CorruptArtifact
from steerboard.platform.storage.protocol import CHUNK, Hashed, Stored
from steerboard_contracts.files.disk import sync_folder

_PARTIAL = ".partial"
_WHAT = "the file store"


class FolderStorage:
    """A file being written is next to its target as `.NAME.RANDOM.partial`, and so is removed with its folder.

    `private`: only its owner can read what is in it, whatever the umask; and nothing in it may be a link."""

    remote = False

    def __init__(self, path: str, *, private: bool = False) -> None:
        self._root = Path(os.path.abspath(path))
        self._private = private
        self.url = f"file://{self._root}"

    def put(self, name: str, content: IO[bytes], sha256: str | None = None) -> int:
        path = self._root / name
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{_PARTIAL}")
        hashed = Hashed(sha256)
        with full_disk_named(disk_of(self._root, _WHAT)):
            self._make_folder(path.parent)
            try:
                with create_file(temporary, _WHAT, private=self._private) as target:
                    while chunk := content.read(CHUNK):
                        hashed.update(chunk)
                        target.write(chunk)
                    hashed.agree()
                    target.flush()
                    os.fsync(target.fileno())
                temporary.replace(path)
                sync_folder(path.parent)
            finally:
                temporary.unlink(missing_ok=True)
        return hashed.size

    def _make_folder(self, folder: Path) -> None:
        if not self._private:
            folder.mkdir(parents=True, exist_ok=True)
            return
        if folder != self._root and folder.is_relative_to(self._root):
            self._make_folder(folder.parent)
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            # Also those of an older version, which were open to others.
            if folder.stat().st_mode & 0o777 != 0o700:
                folder.chmod(0o700)
        elif not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)

    def open(self, name: str) -> IO[bytes]:
        path = self._root / name
        if self._private:
            self._refuse_links(path)
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _is_link(name) from None
            raise

    def _refuse_links(self, path: Path) -> None:
        while path != self._root:
            if path.is_symlink():
                raise _is_link(path.relative_to(self._root).as_posix())
            path = path.parent

    def size(self, name: str) -> int | None:
        try:
            return (self._root / name).stat().st_size
        except FileNotFoundError:
            return None

    def vouches(self, name: str, sha256: str, size: int) -> bool | None:
        """Returns None: on a disk, the right size does not prove the content."""
        return None if self.size(name) == size else False

    def files(self, prefix: str) -> Iterator[Stored]:
        return (stored for stored in self._all(prefix) if not stored.name.endswith(_PARTIAL))

    def folders(self, prefix: str) -> list[str]:
        if not (self._root / prefix).is_dir():
            return []
        return [entry.name for entry in (self._root / prefix).iterdir() if entry.is_dir()]

    def _all(self, prefix: str) -> Iterator[Stored]:
        for folder, _, names in os.walk(self._root / prefix):
            for name in names:
                path = Path(folder, name)
                try:
                    status = path.stat()
                except FileNotFoundError:  # removed by someone else meanwhile
                    continue
                yield Stored(path.relative_to(self._root).as_posix(), status.st_size, _time(status.st_mtime))

    def remove(self, names: list[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def remove_folder(self, prefix: str) -> None:
        shutil.rmtree(self._root / prefix, ignore_errors=True)

    def unfinished(self, prefix: str) -> list[Stored]:
        return [stored for stored in self._all(prefix) if stored.name.endswith(_PARTIAL)]

    def remove_unfinished(self, uploads: list[Stored]) -> None:
        self.remove([upload.name for upload in uploads])

    def check(self) -> None:
        parent = next(folder for folder in (self._root, *self._root.parents) if folder.exists())
        if not os.access(parent, os.W_OK | os.X_OK):
            raise PermissionError(f"{parent} cannot be written")


def _is_link(name: str) -> CorruptArtifact:
    return CorruptArtifact(f"{name} is a link, and not the file itself", hint="Put the file in its place.")


def _time(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
