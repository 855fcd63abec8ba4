"""COPY into the database, which gives up before the disk of an embedded one is full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from steerboard.platform.storage.disk import no_space_for_rows
from steerboard_contracts.files.disk import Disk

# Between two looks at the disk.
_LOOK_BYTES = 2 << 20
# Rough cost of a row besides its texts.
_ROW_BYTES = 64
# PostgreSQL's log grows by segments of this size.
_LOG_BYTES = 16 << 20


class RowCopy:
    """A COPY into the database. Looks every few megabytes whether its disk still has room, where that can be seen.

    `rows`: how many the database took, once the COPY has ended."""

    def __init__(self, copy: psycopg.Copy, disk: Disk | None) -> None:
        self._copy, self._disk = copy, disk
        self._unchecked = _LOOK_BYTES
        self.rows = 0

    def write_row(self, row: Sequence[Any]) -> None:
        """Raises `NoSpaceLeft`."""
        self._copy.write_row(row)
        self._count(_ROW_BYTES + sum(len(value) for value in row if isinstance(value, str | bytes)))

    def write(self, data: bytes) -> None:
        """A piece of the rows as text. Raises `NoSpaceLeft`."""
        self._copy.write(data)
        self._count(len(data))

    def _count(self, size: int) -> None:
        self._unchecked += size
        if self._unchecked >= _LOOK_BYTES and self._disk is not None:
            # Rows are written twice, and once more into the indexes; the log comes in segments of 16 MB.
            self._disk.need(_LOG_BYTES + 3 * self._unchecked)
            self._unchecked = 0


@contextmanager
def copy_into(connection: psycopg.Connection[Any], statement: str, disk: Disk | None) -> Iterator[RowCopy]:
    """The same on the driver's connection. Raises `NoSpaceLeft`."""
    try:
        with connection.cursor() as cursor:
            with cursor.copy(statement.encode()) as copy:
                made = RowCopy(copy, disk)
                yield made
            made.rows = cursor.rowcount  # known only now, and forgotten when the cursor is closed
    except psycopg.errors.DiskFull as error:
        raise no_space_for_rows() from error
