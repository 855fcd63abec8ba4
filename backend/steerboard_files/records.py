"""What every reader yields, and the bounds that keep a hostile file out of memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from steerboard_files.errors import RepeatedColumn

JSON_COLUMN = b"steerboard.json"  # parquet field metadata: this text column holds JSON


@dataclass(frozen=True, slots=True)
class Problem:
    """Why one line is not a record. `code` is a stable error code, `reason` a sentence about this line."""

    code: str
    reason: str


Record = tuple[int, dict[str, Any] | Problem]
"""(line number from 1, the record or what is wrong with it). Parquet counts rows instead of lines."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes. A longer line is refused without being read into memory; `unpacked` bounds what a compressed file
    becomes, and so does its own size: by `ratio`, once it has become more than `small`."""

    line: int = 16 * 2**20
    unpacked: int = 256 * 2**30
    ratio: int = 100
    small: int = 64 * 2**20

    def of(self, size: int) -> Limits:
        """The limits for a compressed file of `size` bytes."""
        return replace(self, unpacked=min(self.unpacked, max(self.small, self.ratio * size)))


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: `label` is its name as shown to the user, `open` gives a seekable binary stream."""

    label: str
    open: Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class Reader:
    """An opened source. `unit` is what its numbers count: `line` or `row`."""

    file: BinaryIO
    format: str
    unit: str
    records: Iterator[Record]


def check_names(names: Sequence[str], where: str) -> None:
    """Raises `RepeatedColumn` when one of the names occurs twice. `where`: what has them, for the message."""
    twice = [f"`{name[:100]}`" for name, count in Counter(names).items() if count > 1]
    if twice:
        raise RepeatedColumn(
            f"{where} has {', '.join(twice[:10])} more than once, and it is unknown which one counts",
            hint="Rename or remove one of them in the file.",
        )
