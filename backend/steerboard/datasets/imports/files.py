"""Files of imports, below the artifact store's URL but not by content: they are deleted with their import.

`imports/<import id>/<name>`. Several API processes share the store, so any of them can take an import up.
"""

from __future__ import annotations

import io
import uuid
from typing import IO, Any, BinaryIO

from steerboard.datasets.errors import ImportFileGone
from steerboard.platform.storage.artifacts import IMPORTS
from steerboard.platform.storage.from_url import open_storage

_CHUNK = 1 << 20


class Meter:
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        self.bytes = 0


class ImportFiles:
    """`url` is that of the artifact store."""

    def __init__(self, url: str) -> None:
        self._storage = open_storage(url)

    def put(self, import_id: uuid.UUID, name: str, content: IO[bytes]) -> int:
        """Store what is left of `content`, whole or not at all. Returns its bytes. Raises `NoSpaceLeft`."""
        return self._storage.put(self._path(import_id, name), content)

    def open(self, import_id: uuid.UUID, name: str, meter: Meter | None = None) -> BinaryIO:
        """A seekable stream of a stored file. Raises `ImportFileGone`."""
        try:
            raw = self._storage.open(self._path(import_id, name))
        except FileNotFoundError:
            raise ImportFileGone(
                "the file of this import is no longer stored", hint="Upload it again as a new import."
            ) from None
        return io.BufferedReader(_Metered(raw, meter or Meter()), _CHUNK)

    def exists(self, import_id: uuid.UUID, name: str) -> bool:
        return self._storage.size(self._path(import_id, name)) is not None

    def remove(self, import_id: uuid.UUID, name: str | None = None) -> None:
        """One file, or all of an import; it may be gone already."""
        if name:
            self._storage.remove([self._path(import_id, name)])
        else:
            self._storage.remove_folder(self._path(import_id, ""))

    def import_ids(self) -> list[uuid.UUID]:
        """The imports that have files, with a row or without."""
        return [uuid.UUID(name) for name in self._storage.folders(IMPORTS) if len(name) == 36]

    def _path(self, import_id: uuid.UUID, name: str) -> str:
        return f"{IMPORTS}{import_id}/{name}"


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
