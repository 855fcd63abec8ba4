"""The process that decodes a parquet file in bounded memory: `python -m ...parquet_process FILE_BYTES LINE_BYTES`.

Compression, dictionaries, shared prefixes and repetition levels each let a small file ask for any amount of memory,
deep in the decoder, where nothing can be checked beforehand. Here the system refuses what goes beyond `MEMORY`; the
rows are then read fewer at a time, until one alone is too much. A crash of the decoder ends nothing else either.
"""

from __future__ import annotations

import io
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from steerboard_files.parquet_frames import FRAME, READ, Kind
from steerboard_files.records import JSON_COLUMN

# Arrow holds one whole page of each column, and DuckDB writes pages of 100 MB: this is enough for four such columns.
MEMORY = 512 * 2**20
BATCH_ROWS = (1024, 64, 1)
_SLICE = 8 * 2**20
_DEEPEST = 200
_LONGEST_REASON = 2000
# About the bytes of a Python object beyond the text or number that it holds.
_VALUE, _LIST, _DICT = 16, 64, 128


def main(size: int, line: int) -> None:
    """Send the rows of the file. Every failure is reported in the last frame."""
    _bound_memory()
    out = sys.stdout.buffer
    rows = _Rows(_RequestedFile(size), line)
    try:
        rows.send()
        _send(Kind.END)
    except BrokenPipeError:
        return  # no one reads any more
    except (MemoryError, pa.ArrowException, OSError, ValueError, RecursionError) as error:
        if _ran_out_of_memory(error):
            where = f", in row group {rows.group}" if rows.group else ", in its footer"
            _send(Kind.MEMORY, content=where.encode())
        else:
            _send(Kind.BROKEN, content=str(error)[:_LONGEST_REASON].encode(errors="replace"))
    out.flush()


def _ran_out_of_memory(error: Exception) -> bool:
    """Some parts of the decoder only name the reason."""
    return isinstance(error, MemoryError) or "bad_alloc" in str(error)


def _bound_memory() -> None:
    """Works on Linux. Counts what this process can write to; the libraries it has loaded are in already."""
    with suppress(OSError, ValueError):
        match = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if match:
            most = int(match[1]) * 1024 + MEMORY
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    # If the machine itself runs short, this process is killed before those that others need.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _send(kind: Kind, number: int = 0, content: Any = b"") -> None:
    sys.stdout.buffer.write(FRAME.pack(kind, number, len(content)))
    sys.stdout.buffer.write(content)


class _RequestedFile(io.RawIOBase):
    """The file, whose bytes are requested from the parent process."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, wanted: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        wanted = left if wanted < 0 else min(wanted, left)
        if not wanted:
            return b""
        sys.stdout.buffer.write(FRAME.pack(Kind.READ, self._at, wanted))
        sys.stdout.buffer.flush()
        (count,) = READ.unpack(sys.stdin.buffer.read(READ.size) or READ.pack(0))
        content = sys.stdin.buffer.read(count)
        self._at += len(content)
        return content


class _Rows:
    """`group`: the row group that is read, from 1; 0 before the first."""

    def __init__(self, file: _RequestedFile, line: int) -> None:
        self._file = file
        self._line = line
        self._sizes = list(BATCH_ROWS)
        self.group = 0

    def send(self) -> None:
        # Without pre-buffering a row group is read page by page, so its size does not matter.
        parquet = pq.ParquetFile(self._file, pre_buffer=False, buffer_size=1 << 20, schema_depth_limit=_DEEPEST)
        schema = pa.schema([_plain_field(field) for field in parquet.schema_arrow])
        _send(Kind.SCHEMA, content=schema.serialize())
        for group in range(parquet.num_row_groups):
            self.group = group + 1
            for batch in self._batches(parquet, group, schema):
                self._send_slices(batch)

    def _batches(self, parquet: Any, group: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """A row group's rows; when memory does not suffice, fewer at a time from then on. Raises the error of missing
        memory when it does not suffice for one."""
        sent = 0
        while True:
            passed = 0
            try:
                for batch in parquet.iter_batches(batch_size=self._sizes[0], row_groups=[group], use_threads=False):
                    fresh = batch[max(0, sent - passed) :]
                    passed += len(batch)
                    if len(fresh):
                        yield fresh.cast(schema)
                        sent += len(fresh)
                return
            except (MemoryError, pa.ArrowException, OSError) as error:
                if len(self._sizes) == 1 or not _ran_out_of_memory(error):
                    raise
            batch = fresh = None  # before the next try
            del self._sizes[0]

    def _send_slices(self, batch: pa.RecordBatch) -> None:
        """Slices that become no more than a few megabytes of Python objects each."""
        size = sum(_weight(column) for column in batch.columns)
        if size <= _SLICE or (len(batch) == 1 and size <= self._line):
            _send(Kind.ROWS, content=batch.serialize())
        elif len(batch) == 1:
            _send(Kind.LONG_ROW, size)
        else:
            half = len(batch) // 2
            self._send_slices(batch[:half])
            self._send_slices(batch[half:])


def _plain_field(field: pa.Field) -> pa.Field:
    """The field without metadata, which can be large, except for our own mark."""
    marked = {JSON_COLUMN: b"1"} if JSON_COLUMN in (field.metadata or {}) else None
    return pa.field(field.name, _plain(field.type), field.nullable, marked)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the same values, each written out: of those that share bytes a slice hides the final size."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if pa.types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    return kind


def _weight(column: pa.Array) -> int:
    """The approximate number of bytes of its values as Python objects."""
    if isinstance(column, pa.ExtensionArray):
        return _weight(column.storage)
    kind = column.type
    if pa.types.is_struct(kind):
        return len(column) * _DICT + sum(_weight(part) for part in column.flatten())
    if pa.types.is_map(kind):
        first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
        parts = (column.keys[first:last], column.items[first:last])
        return len(column) * _LIST + sum(map(_weight, parts))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return len(column) * _LIST + _weight(column.flatten())
    return len(column) * _VALUE + int(column.nbytes)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
