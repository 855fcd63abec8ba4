"""Rows of a table as a compressed stream, and back, in bounded memory.

Why the rows are copied here and not by pg_dump: see `backup`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Any

_READ_BYTES = 1 << 20
_LEVEL = 4


class CompressedRows(io.RawIOBase):
    """The rows that COPY gives, as gzip. `rows`, `size` and `sha256` are known once all of it was read."""

    def __init__(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        self._pieces = iter(pieces)
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        self._waiting = b""
        self._ended = False
        self._digest = hashlib.sha256()
        self.rows = self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting and not self._ended:
            piece = next(self._pieces, None)
            if piece is None:
                self._waiting, self._ended = self._gzip.flush(), True
            else:
                # A row is a line: COPY escapes line breaks in values.
                content = bytes(piece)
                self.rows += content.count(b"\n")
                self._waiting = self._gzip.compress(content)
        data, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(data)] = data
        self._digest.update(data)
        self.size += len(data)
        return len(data)


def rows_of(file: IO[bytes]) -> Iterator[bytes]:
    """What `CompressedRows` was made from."""
    with gzip.GzipFile(fileobj=file, mode="rb") as opened:
        while piece := opened.read(_READ_BYTES):
            yield piece


def hash_of(file: IO[bytes]) -> tuple[str, int]:
    """(SHA-256, bytes) of what is left of a file."""
    digest, size = hashlib.sha256(), 0
    while piece := file.read(_READ_BYTES):
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest(), size
