"""What every store can do. Names are relative, with `/` between their parts."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Protocol

from steerboard.platform.storage.errors import CorruptArtifact

CHUNK = 1 << 20


@dataclass(frozen=True)
class Stored:
    """A file of a store, or an upload that no one finished. `size` in bytes; `modified` by the store's clock."""

    name: str
    size: int
    modified: dt.datetime


class Storage(Protocol):
    """Raises `StoreUnavailable`, `StoreRefused`, `NoSuchBucket`, `StoreFailed`; of a local disk `NoSpaceLeft`, and
    OSError for the rest."""

    url: str
    remote: bool

    def put(self, name: str, content: IO[bytes], sha256: str | None = None) -> int:
        """Store what is left of `content` under its final name, whole or not at all; a file of that name is replaced.

        Returns its bytes. Raises `CorruptArtifact` when they do not have the hash, and then nothing is stored.
        """

    def open(self, name: str) -> IO[bytes]:
        """A seekable stream. Raises FileNotFoundError."""

    def size(self, name: str) -> int | None:
        """The size in bytes; None when it is not there."""

    def vouches(self, name: str, sha256: str, size: int) -> bool | None:
        """Whether a file is there with this content, without reading it. None: only reading it would tell."""

    def files(self, prefix: str) -> Iterator[Stored]:
        """Every file whose name begins with `prefix`, which ends in `/`."""

    def folders(self, prefix: str) -> list[str]:
        """The next part of every name that begins with `prefix`, which ends in `/`, also of unfinished uploads where
        they are in a folder."""

    def remove(self, names: list[str]) -> None:
        """Files that are not there are no error."""

    def remove_folder(self, prefix: str) -> None:
        """Every file whose name begins with `prefix`, which ends in `/`."""

    def unfinished(self, prefix: str) -> list[Stored]:
        """Uploads to names that begin with `prefix`, which ends in `/`, that were begun and neither finished nor taken
        back, as a crash leaves them."""

    def remove_unfinished(self, uploads: list[Stored]) -> None:
        """Give their space back. Those that have been finished meanwhile stay as they are."""

    def check(self) -> None:
        """Ask once whether the store answers and accepts us; for health, so nothing is written."""


class Hashed:
    """Counts and hashes what passes; `agree` raises `CorruptArtifact` unless it had the hash."""

    def __init__(self, sha256: str | None) -> None:
        self._expected = sha256
        self._digest = hashlib.sha256()
        self.size = 0

    def update(self, data: bytes) -> None:
        self._digest.update(data)
        self.size += len(data)

    def agree(self) -> None:
        if self._expected is not None and self._digest.hexdigest() != self._expected:
            raise CorruptArtifact("a file changed while it was being stored", hint="Store it again.")
