"""Files of imports, below the artifact store's URL but not by content: they are deleted with their import.

`imports/<import id>/<name>`. Several API processes share the store, so any of them can take an import up.
"""

from __future__ import annotations

import errno
import io
import os
import uuid
from typing import IO, Any, BinaryIO

import fsspec

from steerboard.datasets.errors import ImportFileGone
from steerboard_contracts.errors import NoSpaceLeft

_CHUNK = 1 << 20


class Meter:
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        self.bytes = 0


class ImportFiles:
    """`url` is that of the artifact store."""

    def __init__(self, url: str) -> None:
        self._files, root = fsspec.core.url_to_fs(url)
        self._root = f"{root}/imports"
        self._local = self._files.protocol in ("file", ("file", "local"))

    def put(self, import_id: uuid.UUID, name: str, content: IO[bytes]) -> int:
        """Store what is left of `content`, whole or not at all. Returns its bytes. Raises `NoSpaceLeft`."""
        path = self._path(import_id, name)
        # Beside its place, so that it goes with the import's folder when we do not get to the end.
        temporary = f"{path}.{uuid.uuid4().hex}.partial"
        size = 0
        try:
            self._files.makedirs(os.path.dirname(path), exist_ok=True)
            with self._files.open(temporary, "wb") as target:
                while chunk := content.read(_CHUNK):
                    size += target.write(chunk)
                if self._local:
                    target.flush()
                    os.fsync(target.fileno())
            if self._local:
                os.replace(temporary, path)
                _sync(os.path.dirname(path))
            else:
                self._files.mv(temporary, path)
        except BaseException as error:
            if self._files.exists(temporary):
                self._files.rm(temporary)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise NoSpaceLeft("the server has no space left for the file", hint="Free some space.") from error
            raise
        return size

    def open(self, import_id: uuid.UUID, name: str, meter: Meter | None = None) -> BinaryIO:
        """A seekable stream of a stored file. Raises `ImportFileGone`."""
        try:
            raw = self._files.open(self._path(import_id, name), "rb")
        except FileNotFoundError:
            raise ImportFileGone(
                "the file of this import is no longer stored", hint="Upload it again as a new import."
            ) from None
        return io.BufferedReader(_Metered(raw, meter or Meter()), _CHUNK)

    def exists(self, import_id: uuid.UUID, name: str) -> bool:
        return bool(self._files.exists(self._path(import_id, name)))

    def remove(self, import_id: uuid.UUID, name: str | None = None) -> None:
        """One file, or all of an import; it may be gone already."""
        path = self._path(import_id, name) if name else f"{self._root}/{import_id}"
        if self._files.exists(path):
            self._files.rm(path, recursive=name is None)

    def import_ids(self) -> list[uuid.UUID]:
        """Those that have files, with a row or without."""
        if not self._files.exists(self._root):
            return []
        names = [os.path.basename(str(path).rstrip("/")) for path in self._files.ls(self._root, detail=False)]
        return [uuid.UUID(name) for name in names if len(name) == 36]

    def _path(self, import_id: uuid.UUID, name: str) -> str:
        return f"{self._root}/{import_id}/{name}"


class _Metered(io.RawIOBase):
    def __init__(self, inner: Any, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._meter.bytes += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._inner.seek(offset, whence))

    def tell(self) -> int:
        return int(self._inner.tell())

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
        super().close()


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
