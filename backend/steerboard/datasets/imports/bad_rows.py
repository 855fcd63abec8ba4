"""All bad rows of an import: written to its folder while it is read, and downloaded as CSV or JSON."""

from __future__ import annotations

import csv
import gzip
import io
import uuid
from collections.abc import Iterator
from typing import BinaryIO

import orjson

from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.schemas import BadRowReport
from steerboard.platform.csv_cells import text_cell
from steerboard.platform.storage import scratch
from steerboard_files.texts import storable

_FIELDS = ("line", "code", "reason", "file")
_BATCH = 1000


class BadRowFile:
    """JSON lines, gzipped, in a temporary file until `store`."""

    def __init__(self) -> None:
        self._file = scratch.file("the list of bad rows")
        self._lines = gzip.GzipFile(fileobj=self._file, mode="wb", compresslevel=1)
        self._rows = 0

    def add(self, bad: BadRowReport) -> None:
        self._lines.write(orjson.dumps(storable(bad.model_dump())) + b"\n")
        self._rows += 1

    def store(self, files: ImportFiles, import_id: uuid.UUID) -> str | None:
        """Store it next to the upload, under its own name. None when there are no bad rows."""
        self._lines.close()
        if self._rows == 0:
            return None
        self._file.seek(0)
        name = f"bad-{uuid.uuid4().hex}.jsonl.gz"
        files.put(import_id, name, self._file)
        return name


def bad_rows(file: BinaryIO | None) -> Iterator[BadRowReport]:
    """The bad rows in the order of the upload; none without a file."""
    if file is not None:
        with file, gzip.GzipFile(fileobj=file, mode="rb") as lines:
            for line in lines:
                yield BadRowReport.model_construct(**orjson.loads(line))


def as_json(rows: Iterator[BadRowReport]) -> Iterator[bytes]:
    """One JSON array, one row a line."""
    before = b"["
    for row in rows:
        yield before + orjson.dumps({name: getattr(row, name) for name in _FIELDS})
        before = b",\n"
    yield b"[]\n" if before == b"[" else b"]\n"


def as_csv(rows: Iterator[BadRowReport]) -> Iterator[bytes]:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_FIELDS)
    for count, row in enumerate(rows, 1):
        writer.writerow([row.line, *(text_cell(text) for text in (row.code, row.reason, row.file))])
        if count % _BATCH == 0:
            yield out.getvalue().encode()
            out.seek(0)
            out.truncate()
    yield out.getvalue().encode()
