"""Rows that a run has finished, kept through kills: one JSON line each, appended as they are made.

Every attempt writes a file of its own, so that a frozen earlier attempt that wakes up cannot spoil it; all are read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

Row = dict[str, Any]


class ResumableRows:
    """Finished rows by `key(row)`, added by any number of threads. A torn last line is ignored: its row is made
    again. Runs that share a folder add the name of a `writer` to their files."""

    def __init__(self, folder: Path, attempt: int, key: tuple[str, ...], writer: str = "") -> None:
        self._key = key
        self._lock = threading.Lock()
        self.rows: dict[tuple[Any, ...], Row] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("a*-rows.jsonl")):
            self._read(path)
        # "ab" and a fresh line: an attempt that is started twice continues after its own torn line.
        self._file = (folder / f"a{attempt}-{writer}rows.jsonl").open("ab")
        self._file.write(b"\n")

    def __enter__(self) -> ResumableRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self.rows

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows; they are in the file when this returns."""
        with self._lock:
            for row in rows:
                self.rows[self._key_of(row)] = row
                self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()

    def _read(self, path: Path) -> None:
        with path.open("rb") as file:
            for line in file:
                try:
                    row = json.loads(line)
                    self.rows[self._key_of(row)] = row
                except (ValueError, KeyError, TypeError):
                    continue

    def _key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._key)
