"""A folder as a store: files appear under their names by a rename, after their content is on the disk."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from steerboard.platform.storage.protocol import CHUNK, Hashed, Stored

_PARTIAL = ".partial"


class FolderStorage:
    """What is being written lies beside its place as `.NAME.RANDOM.partial`, and so goes with its folder."""

    remote = False

    def __init__(self, path: str) -> None:
        self._root = Path(os.path.abspath(path))
        self.url = f"file://{self._root}"

    def put(self, name: str, content: IO[bytes], sha256: str | None = None) -> int:
        path = self._root / name
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{_PARTIAL}")
        path.parent.mkdir(parents=True, exist_ok=True)
        hashed = Hashed(sha256)
        try:
            with temporary.open("wb") as target:
                while chunk := content.read(CHUNK):
                    hashed.update(chunk)
                    target.write(chunk)
                hashed.agree()
                target.flush()
                os.fsync(target.fileno())
            temporary.replace(path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
        return hashed.size

    def open(self, name: str) -> IO[bytes]:
        return (self._root / name).open("rb")

    def size(self, name: str) -> int | None:
        try:
            return (self._root / name).stat().st_size
        except FileNotFoundError:
            return None

    def vouches(self, name: str, sha256: str, size: int) -> bool | None:
        """A disk says nothing of the content of a file of the right size."""
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
                except FileNotFoundError:  # removed by somebody else meanwhile
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


def _time(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
