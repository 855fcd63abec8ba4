"""A small parquet file that asks for gigabytes costs neither the process that reads it nor its decoder that much."""

from __future__ import annotations

import datetime as dt
import io
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steerboard_files.detect import open_reader
from steerboard_files.errors import BrokenFile
from steerboard_files.records import Limits, Source
from support.patience import PATIENCE

MEGABYTE = 2**20
# Reads a first file, so that libraries are loaded, then the one to measure; prints how it ended and peaks in MB.
MEASURE = """
import json, resource, sys
from pathlib import Path
from steerboard_files.detect import open_reader
from steerboard_files.records import Limits, Problem, Source
from steerboard_contracts.errors import SteerboardError

def read(path):
    rows, problems, characters = 0, [], 0
    try:
        # How much a file may give is another limit than how much memory it may take.
        for number, row in open_reader(Source(path, lambda: Path(path).open("rb")), Limits(ratio=10**9)).records:
            rows += 1
            if isinstance(row, Problem):
                problems.append([number, row.code])
            else:
                characters += sum(len(value) for value in row.values() if isinstance(value, str))
    except SteerboardError as error:
        return {"rows": rows, "code": error.code, "detail": error.detail}
    return {"rows": rows, "problems": problems, "characters": characters}

peak = lambda who: resource.getrusage(who).ru_maxrss // 1024
read(sys.argv[1])
before = peak(resource.RUSAGE_SELF)
said = read(sys.argv[2])
said["grown"] = peak(resource.RUSAGE_SELF) - before
said["decoder"] = peak(resource.RUSAGE_CHILDREN)
print(json.dumps(said))
"""


def measured(tmp_path: Path, hostile: bytes) -> dict[str, Any]:
    (tmp_path / "first.parquet").write_bytes(written(pa.table({"prompt": ["Hi"]})))
    (tmp_path / "hostile.parquet").write_bytes(hostile)
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "first.parquet"), str(tmp_path / "hostile.parquet")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=PATIENCE)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def read(content: bytes, limits: Limits | None = None) -> list[Any]:
    return list(open_reader(Source("rows", lambda: io.BytesIO(content)), limits).records)


# -- files written by hand, in Thrift's compact protocol ---------------------------------------------------------------


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def i32(number: int) -> tuple[int, bytes]:
    return 5, varint(number << 1)


def i64(number: int) -> tuple[int, bytes]:
    return 6, varint(number << 1)


def text(value: str) -> tuple[int, bytes]:
    return 8, varint(len(value)) + value.encode()


def listed(items: Sequence[tuple[int, bytes]], claimed: int | None = None) -> tuple[int, bytes]:
    kind = items[0][0]
    return 9, bytes([0xF0 | kind]) + varint(claimed or len(items)) + b"".join(item for _, item in items)


def struct(**fields: tuple[int, bytes]) -> tuple[int, bytes]:
    """Fields by number: `_1`, `_3`, ..."""
    out, last = b"", 0
    for name, (kind, value) in fields.items():
        number = int(name[1:])
        out += bytes([(number - last) << 4 | kind]) + value
        last = number
    return 12, out + b"\x00"


def data_page(values: int, compressed: bytes, size: int, encoding: int = 0) -> bytes:
    about = struct(_1=i32(values), _2=i32(encoding), _3=i32(3), _4=i32(3))
    return struct(_1=i32(0), _2=i32(size), _3=i32(len(compressed)), _5=about)[1] + compressed


def dictionary_page(values: int, compressed: bytes, size: int) -> bytes:
    return (
        struct(_1=i32(2), _2=i32(size), _3=i32(len(compressed)), _7=struct(_1=i32(values), _2=i32(0)))[1] + compressed
    )


def zstd(*parts: tuple[bytes, int]) -> bytes:
    """Each piece so many times, compressed without ever being in memory."""
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        for piece, times in parts:
            for _ in range(times):
                stream.write(piece)
    return bytes(out.getvalue())


def by_hand(
    kind: int, rows: int, values: int, pages: bytes, dictionary: int = 0, *, nested: bool = False, claimed: int = 1
) -> bytes:
    """A file of one row group and one column, `prompt`; nested: a list of it. `claimed` columns in the footer."""
    leaf = struct(_1=i32(kind), _3=i32(2 if nested else 0), _4=text("prompt"))
    schema = [struct(_4=text("schema"), _5=i32(1)), leaf]
    places = {"_9": i64(4 + dictionary)} | ({"_11": i64(4)} if dictionary else {})
    size = i64(len(pages))
    about = {
        "_1": i32(kind),
        "_2": listed([i32(0), i32(8)]),
        "_3": listed([text("prompt")]),
        "_4": i32(6),
        "_5": i64(values),
        "_6": size,
        "_7": size,
    }
    column = struct(_2=i64(4), _3=struct(**about, **places))
    group = struct(_1=listed([column], claimed), _2=size, _3=i64(rows))
    footer = struct(_1=i32(1), _2=listed(schema), _3=i64(rows), _4=listed([group]))[1]
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


INT64 = 2


def page_of_zeros() -> bytes:
    """One page that is 2 GB of zeros when it is unpacked."""
    size = 2**31 - 2**20
    return by_hand(INT64, size // 8, size // 8, data_page(size // 8, zstd((bytes(MEGABYTE), size // MEGABYTE)), size))


def one_endless_row() -> bytes:
    """A single row, a list of a billion numbers, of which page and dictionary hold a few bytes."""
    values = 2**30
    levels = varint(1 << 1) + b"\x00" + varint((values - 1) << 1) + b"\x01"
    defined = varint(values << 1) + b"\x01"
    chosen = b"\x01" + varint(values << 1) + b"\x00"
    body = b"".join((len(levels).to_bytes(4, "little"), levels, len(defined).to_bytes(4, "little"), defined, chosen))
    number = zstd((bytes(8), 1))
    dictionary = dictionary_page(1, number, 8)
    pages = dictionary + data_page(values, zstd((body, 1)), len(body), encoding=8)
    return by_hand(INT64, 1, values, pages, len(dictionary), nested=True)


def footer_of_a_million_columns() -> bytes:
    return by_hand(INT64, 1, 1, data_page(1, zstd((bytes(8), 1)), 8), claimed=1_000_000)


def one_text_many_times(megabytes: int, rows: int, *, nested: bool = False, as_dictionary: bool = False) -> bytes:
    """A text that the file holds once, in its dictionary, in each of its rows."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * (megabytes * MEGABYTE)])
    column: pa.Array = texts
    if nested:
        turns = pa.StructArray.from_arrays([pa.array(["user"] * rows), texts], ["role", "content"])
        column = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), turns)
    table = pa.table({"prompt": column})
    return written(table, compression="zstd", store_schema=as_dictionary)


@pytest.mark.parametrize(
    ("nested", "as_dictionary"), [pytest.param(False, False, marks=pytest.mark.long), (True, True)]
)
def test_a_text_that_is_held_once_and_used_in_every_row_is_read_row_by_row(
    tmp_path: Path, nested: bool, as_dictionary: bool
) -> None:
    content = one_text_many_times(4, 192, nested=nested, as_dictionary=as_dictionary)
    assert len(content) < 2000
    said = measured(tmp_path, content)
    assert (said["rows"], said["problems"]) == (192, [])
    assert said["characters"] == (0 if nested else 192 * 4 * MEGABYTE)
    assert said["grown"] < 100
    assert said["decoder"] < 700


def test_a_row_over_the_limit_of_a_line_is_refused_by_its_number_and_the_others_are_read(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 40, pa.int32()), ["x" * (20 * MEGABYTE), "fine"])
    said = measured(tmp_path, written(pa.table({"prompt": texts}), compression="zstd", store_schema=False))
    assert said["problems"] == [[number, "line_too_long"] for number in range(1, 80, 2)]
    assert said["characters"] == 40 * len("fine")
    assert said["grown"] < 100


@pytest.mark.parametrize("make", [page_of_zeros, one_endless_row, footer_of_a_million_columns])
def test_what_takes_more_memory_than_any_real_file_is_refused(tmp_path: Path, make: Callable[[], bytes]) -> None:
    content = make()
    assert len(content) < 300_000
    said = measured(tmp_path, content)
    assert said["code"] in ("file_too_large", "broken_file")
    assert "after row 0" in said["detail"]
    assert said["grown"] < 100
    assert said["decoder"] < 700


def decoders() -> set[int]:
    """Processes of ours that decode parquet."""
    pids = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # of another test, and just gone
            if "parquet_process" in " ".join(process.cmdline()):
                pids.add(process.pid)
    return pids


def test_a_file_that_is_not_read_to_its_end_leaves_no_process_behind() -> None:
    content = written(pa.table({"prompt": [f"{number} " + "word " * 2000 for number in range(3000)]}))
    before = decoders()
    records = open_reader(Source("rows", lambda: io.BytesIO(content))).records
    assert next(records)[0] == 1
    assert len(decoders() - before) == 1
    del records
    assert decoders() == before


def test_a_decoder_that_dies_is_a_broken_file_and_names_the_row() -> None:
    content = written(pa.table({"prompt": [f"{number} " + "word " * 2000 for number in range(3000)]}))
    before = decoders()
    records = open_reader(Source("rows", lambda: io.BytesIO(content))).records
    next(records)
    for pid in decoders() - before:
        psutil.Process(pid).kill()
    with pytest.raises(BrokenFile, match=r"after row [1-9]\d*: its decoder crashed"):
        list(records)


def test_rows_come_once_and_in_order_when_memory_lets_fewer_be_read_at_a_time() -> None:
    # The second batch does not fit into memory, the first did; both are of one row group.
    chosen = pa.array([0] * 1024 + [1] * 600, pa.int32())
    texts = pa.DictionaryArray.from_arrays(chosen, ["short", "x" * MEGABYTE])
    table = pa.table({"prompt": [f"row {number}" for number in range(1624)], "long": texts})
    content = written(table, store_schema=False)
    records = read(content, Limits(ratio=10**9))
    assert [(number, row["prompt"]) for number, row in records if isinstance(row, dict)] == [
        (number + 1, f"row {number}") for number in range(1624)
    ]


def test_every_type_of_column_comes_as_it_did() -> None:
    day = dt.datetime(2020, 1, 1)
    rows: list[dict[str, Any]] = [
        {"a": "x", "turns": [{"role": "user", "content": "Hi"}], "at": day, "price": Decimal("1.5"), "ok": True},
        {"a": None, "turns": [], "at": None, "price": None, "ok": None},
    ]
    table = pa.Table.from_pylist(rows)
    table = table.append_column("kind", pa.array(["p", "q"]).dictionary_encode())
    table = table.append_column("seen", pa.array(["p", None], pa.string_view()))
    table = table.append_column("pairs", pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())))
    table = table.append_column("two", pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)))
    table = table.append_column("none", pa.nulls(2))
    assert read(written(table)) == list(enumerate(table.to_pylist(), start=1))
