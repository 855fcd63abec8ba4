"""Every supported file is read by its content, and every unusable one reports what is wrong and where."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import time
import tracemalloc
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steerboard_contracts.errors import BadInput
from steerboard_files import json_array
from steerboard_files.detect import open_reader
from steerboard_files.errors import BrokenFile, EmptyFile, FileTooLarge, RepeatedColumn, WrongFileType
from steerboard_files.records import Limits, Problem, Source

ROWS = [{"prompt": "Hi", "response": "Hello"}, {"prompt": "Zwei\nZeilen", "response": 'ein "Zitat", ja'}]


def read(content: bytes, name: str = "rows", limits: Limits | None = None) -> list[tuple[int, Any]]:
    return list(open_reader(Source(name, lambda: io.BytesIO(content)), limits).records)


def format_of(content: bytes, name: str = "rows") -> str:
    return open_reader(Source(name, lambda: io.BytesIO(content))).format


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def csv_bytes(rows: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    import csv

    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys(), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def parquet_bytes(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


# Packed without a time, because the bytes are part of a test's name.
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (jsonl(ROWS), "jsonl"),
        (gzip.compress(jsonl(ROWS), mtime=0), "jsonl.gz"),
        (json.dumps(ROWS).encode(), "json"),
        (gzip.compress(json.dumps(ROWS, indent=2).encode(), mtime=0), "json.gz"),
        (csv_bytes(ROWS), "csv"),
        (csv_bytes(ROWS, "\t"), "csv"),
        (csv_bytes(ROWS, ";"), "csv"),
        (gzip.compress(csv_bytes(ROWS), mtime=0), "csv.gz"),
        (parquet_bytes(ROWS), "parquet"),
    ],
)
@pytest.mark.parametrize("name", ["rows", "rows.parquet", "rows.csv"])
def test_a_file_is_recognised_by_its_content_whatever_its_name(content: bytes, expected: str, name: str) -> None:
    assert format_of(content, name) == expected
    assert [record for _, record in read(content, name)] == ROWS


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_text() -> None:
    for content in (jsonl(ROWS), csv_bytes([ROWS[0]])):
        dressed = b"\xef\xbb\xbf" + content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        assert read(dressed)[0] == (read(content)[0][0], ROWS[0])


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"PK\x03\x04rest", "zip"),
        (b"%PDF-1.7", "PDF"),
        (pickle.dumps(ROWS), "pickle"),
        (b"\x28\xb5\x2f\xfdrest", "zstd"),
        (b"\x00\x01\x02binary", "binary"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS"),
        (b'{\n  "prompt": "Hi"\n}', "several lines"),
        (b"just a sentence without any columns", "neither"),
        (gzip.compress(b"\x80\x04pickled", mtime=0), "pickle"),
    ],
)
def test_another_type_of_file_is_refused_by_name_with_a_way_out(content: bytes, word: str) -> None:
    with pytest.raises(WrongFileType, match=word) as refused:
        read(content)
    assert refused.value.code == "wrong_file_type"
    assert refused.value.hint


@pytest.mark.parametrize("content", [b"", b"\n \n\n", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"])
def test_an_empty_file_is_its_own_error(content: bytes) -> None:
    with pytest.raises(EmptyFile):
        read(content)


def test_utf16_is_an_encoding_error() -> None:
    with pytest.raises(WrongFileType) as refused:
        read(jsonl(ROWS).decode().encode("utf-16"))
    assert refused.value.code == "invalid_encoding"


def test_a_truncated_gzip_file_is_broken() -> None:
    whole = gzip.compress(jsonl([{"prompt": str(i)} for i in range(20_000)]))
    for cut in (len(whole) // 2, 40):
        with pytest.raises(BrokenFile, match="gzip"):
            read(whole[:cut])


def test_a_damaged_parquet_file_is_broken() -> None:
    with pytest.raises(BrokenFile, match="parquet"):
        read(parquet_bytes(ROWS)[:-6])


def test_broken_lines_are_named_and_the_good_ones_still_come() -> None:
    lines = [b'{"a": 1}', b'{"a": ', b"[1]", b'{"a": "\xff"}', b"", b'{"a": 2}']
    records = read(b"\n".join(lines), "rows.jsonl")
    assert [(number, r if isinstance(r, dict) else r.code) for number, r in records] == [
        (1, {"a": 1}),
        (2, "broken_json"),
        (3, "bad_row"),
        (4, "invalid_encoding"),
        (6, {"a": 2}),
    ]
    assert "column 8" in records[1][1].reason
    assert "0xff at position 8" in records[3][1].reason


def test_a_file_called_jsonl_is_read_as_such_even_when_its_first_line_is_broken() -> None:
    (first, second) = read(b'prompt, oops\n{"prompt": "Hi"}\n', "rows.jsonl")
    assert first[0] == 1
    assert first[1].code == "broken_json"
    assert second == (2, {"prompt": "Hi"})


class EndlessLine(io.RawIOBase):
    """200 MB without a line end, made as it is read."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.began = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self.left)
        buffer[:count] = b"x" * count
        self.left -= count
        return count


def test_a_line_of_200_mb_is_refused_without_being_held_in_memory() -> None:
    from steerboard_files.jsonl import read_jsonl

    stream: Any = io.BufferedReader(EndlessLine(200 * 10**6))
    tracemalloc.start()
    try:
        ((number, problem),) = read_jsonl(stream, Limits(line=2**20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(problem, Problem)
    assert (number, problem.code) == (1, "line_too_long")
    assert "200,000,000 bytes" in problem.reason
    assert peak < 8 * 2**20


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    rows=st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=6),
    indent=st.sampled_from([None, 0, 2]),
    escaped=st.booleans(),
    piece=st.integers(1, 40),
)
def test_an_array_gives_its_elements_however_it_is_written_and_read(
    rows: list[dict[str, Any]], indent: int | None, escaped: bool, piece: int
) -> None:
    text = json.dumps(rows, indent=indent, ensure_ascii=escaped)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "_PIECE", piece)
        elements = list(json_array.read_json_array(io.BytesIO(text.encode(errors="surrogatepass")), Limits()))
    assert [record for _, record in elements] == rows
    assert [line for line, _ in elements] == sorted(line for line, _ in elements)


def test_elements_that_are_no_objects_are_named_with_their_line_and_the_good_ones_still_come() -> None:
    content = b'[{"a": 1},\n 7,\n {"a": nope},\n\n {"a": "\xff"}, ["x"],\n{"a":\n 2}]'
    assert [(line, r if isinstance(r, dict) else r.code) for line, r in read(content)] == [
        (1, {"a": 1}),
        (2, "bad_row"),
        (3, "broken_json"),
        (5, "invalid_encoding"),
        (5, "bad_row"),
        (6, {"a": 2}),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'[{"a": 1},\n{"a": 2}', "line 2: the array ends too early"),
        (b'[{"a": 1},\n{"a": "never closed}]', "line 2: the array ends too early"),
        (b'[{"a": 1}\n{"a": 2}]', "line 2: missing comma"),
        (b'[7 {"a": 2}]', "line 1: missing comma"),
        (b'[{"a": 1},\n\n]', "line 3: an element is missing"),
        (b'[{"a": 1}],\n', "after the end"),
        (b'["a"]\n["b"]\n', "line 2: there is data after the end"),
        (b'[{"a": 1}, }]', "brace"),
        (b"[" * 100_000, "ends too early"),
    ],
)
def test_an_array_whose_elements_cannot_be_told_apart_is_broken(content: bytes, reason: str) -> None:
    with pytest.raises(BrokenFile, match=reason) as refused:
        read(content)
    assert refused.value.code == "broken_json"


def test_an_array_is_not_held_in_memory_and_an_element_is_bounded() -> None:
    class Endless(io.RawIOBase):
        """An array of 8 MB without an end, made as it is read."""

        left = 8 * 2**20

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            row = b'{"a": "' + b"x" * 2000 + b'"},\n'
            part = b"[" if self.left == type(self).left else row * (len(buffer) // len(row)) if self.left > 0 else b""
            self.left -= len(part)
            buffer[: len(part)] = part
            return len(part)

    tracemalloc.start()
    try:
        with pytest.raises(BrokenFile, match="ends too early"):
            for _ in json_array.read_json_array(cast(Any, io.BufferedReader(Endless(), 1 << 16)), Limits()):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20
    for long in (b'[{"a": 1},\n{"a": "' + b"x" * 4000 + b'"}]', b'[{"a": 1},\n{"a": [' + b"[],\n" * 1000 + b"[]]}]"):
        with pytest.raises(BrokenFile, match="the element on line 2 has more than 3,000 bytes") as refused:
            read(long, limits=Limits(line=3000))
        assert refused.value.code == "line_too_long"


def test_a_gzip_bomb_stops_at_the_bound() -> None:
    bomb = gzip.compress(b'{"prompt": "Hi"}\n' * 200_000)
    with pytest.raises(FileTooLarge):
        read(bomb, limits=Limits(unpacked=10**6))


@pytest.mark.parametrize("blank", [b"\n", b" \r\n", b" " * 200_000 + b"\n"])
def test_a_bomb_of_blank_lines_is_refused_before_it_costs_minutes(blank: bytes) -> None:
    bomb = gzip.compress(b'{"prompt": "Hi"}\n' + blank * (60 * 10**6 // len(blank)))
    began = time.process_time()
    with pytest.raises(BrokenFile):
        read(bomb)
    assert time.process_time() - began < 5


def test_blank_lines_between_rows_are_passed_over() -> None:
    assert len(read(b'{"prompt": "Hi"}\n\n \n' * 60_000)) == 60_000


def test_a_line_without_end_is_not_read_to_its_end() -> None:
    from steerboard_files.jsonl import read_jsonl

    stream = EndlessLine(10**12)
    with pytest.raises(BrokenFile):
        list(read_jsonl(cast(Any, io.BufferedReader(stream)), Limits(line=2**20)))
    assert stream.left > 10**12 - 2 * 2**30


def test_csv_rows_that_do_not_fit_the_header_are_named_by_their_line() -> None:
    content = b'prompt,response\n"two\nlines",fine\nonly one\na,b,c\nlast,row\n'
    records = read(content, "rows.csv")
    assert records[0] == (2, {"prompt": "two\nlines", "response": "fine"})
    assert [(n, r.code) for n, r in records[1:3]] == [(4, "broken_csv"), (5, "broken_csv")]
    assert records[3] == (6, {"prompt": "last", "response": "row"})


def test_an_unclosed_quotation_mark_does_not_swallow_the_file_into_memory() -> None:
    content = b'prompt,response\nHi,"never closed\n' + b"more text\n" * 200_000
    problems = [r for _, r in read(content, "rows.csv", Limits(line=10_000)) if isinstance(r, Problem)]
    assert problems[0].code == "line_too_long"
    assert "quotation mark" in problems[0].reason


def test_invalid_utf8_in_csv_is_named(tmp_path: Path) -> None:
    records = read(b"prompt,response\nHi,Hello\nbad,\xff\nlast,row\n", "rows.csv")
    assert [(n, r if isinstance(r, dict) else r.code) for n, r in records] == [
        (2, {"prompt": "Hi", "response": "Hello"}),
        (3, "invalid_encoding"),
        (4, {"prompt": "last", "response": "row"}),
    ]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=30)


@given(st.lists(st.fixed_dictionaries({"prompt": cells, "response": cells}), min_size=1, max_size=8))
def test_what_was_written_is_what_is_read(rows: list[dict[str, str]]) -> None:
    assert [record for _, record in read(jsonl(rows), "rows.jsonl")] == rows
    assert [record for _, record in read(csv_bytes(rows), "rows.csv")] == rows


# Parquet is decoded in a process of its own, whose start takes its time.
@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["rows.jsonl", "rows.csv", "rows", "rows.parquet"]))
def test_any_bytes_give_records_or_a_typed_error(content: bytes, name: str) -> None:
    try:
        for number, record in open_reader(Source(name, lambda: io.BytesIO(content))).records:
            assert number >= 1
            assert isinstance(record, dict | Problem)
    except BadInput as error:
        refused = error
    else:
        return
    assert refused.code
    assert refused.hint


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused_before_it_is_read_to_its_end() -> None:
    row = json.dumps({"prompt": "a" * 1000, "response": "b"}).encode() + b"\n"
    bomb = gzip.compress(row * 200_000, 9)
    limits = Limits(small=1 << 20)
    assert len(bomb) * 100 < 200_000 * len(row)
    with pytest.raises(FileTooLarge, match="unpacks to more than"):
        read(bomb, limits=limits)
    # What is small all the same is read, whatever it was packed from.
    assert len(read(gzip.compress(row * 500, 9), limits=limits)) == 500


def test_a_parquet_file_that_holds_one_row_a_million_times_is_refused() -> None:
    bomb = parquet_bytes([{"prompt": "a" * 1000, "response": "b"}] * 100_000)
    assert len(bomb) < 100_000
    with pytest.raises(FileTooLarge, match="unpacks to more than"):
        read(bomb, limits=Limits(small=1 << 20))


def twice_parquet(nested: bool = False) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table([["Hi"], ["Hello"], ["No"]], names=["prompt", "response", "response"])
    if nested:
        struct = pa.StructArray.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["content", "content"])
        table = pa.table([pa.ListArray.from_arrays(pa.array([0, 1]), struct)], names=["messages"])
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"prompt,response,response\nHi,Hello,No\n", "response"),
        (b"prompt;response; response\nHi;Hello;No\n", "response"),
        (gzip.compress(b"prompt\tresponse\tresponse\nHi\tHello\tNo\n", mtime=0), "response"),
        (twice_parquet(), "response"),
        (twice_parquet(nested=True), "content"),
    ],
    ids=["csv", "semicolons", "gzip", "parquet", "struct"],
)
def test_a_column_name_that_occurs_twice_is_refused_in_every_format(content: bytes, name: str) -> None:
    with pytest.raises(RepeatedColumn, match=f"`{name}` more than once"):
        read(content)


def test_columns_without_a_name_are_called_by_their_place() -> None:
    assert read(b",prompt,response,\n0,Hi,Hello,\n") == [
        (2, {"column 1": "0", "prompt": "Hi", "response": "Hello", "column 4": ""})
    ]


def test_a_cell_far_beyond_the_usual_limit_of_csv_is_read() -> None:
    cell = "word, " * 40_000
    assert read(csv_bytes([{"prompt": cell, "response": "short"}]))[0][1]["prompt"] == cell


def test_a_gzip_file_of_several_members_is_read_to_its_end() -> None:
    members = [gzip.compress(jsonl([row]), mtime=0) for row in ROWS]
    assert [row for _, row in read(b"".join(members))] == ROWS
