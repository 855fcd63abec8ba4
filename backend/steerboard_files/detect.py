"""What a file is, from its first bytes; its name only settles what the bytes leave open."""

from __future__ import annotations

from typing import BinaryIO

from steerboard_files.delimited import split_header
from steerboard_files.errors import EmptyFile, WrongFileType
from steerboard_files.known import CSV, GZIPPED, IN_WORDS, JSON, JSONL, PARQUET, Format
from steerboard_files.lines import BOM, GZIP_ERRORS, damaged_gzip, size_of, unpacked
from steerboard_files.records import Limits, Reader, Source

_HEAD = 1 << 16
_HINT = f"Steerboard imports {IN_WORDS}."

_OTHER_TYPES = (
    (b"PK\x03\x04", "a zip archive (or an Excel workbook)"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"ARROW1", "an Arrow IPC file"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\x7fELF", "a program"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
    (b"<!DOCTYPE", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<?xml", "an XML document"),
)


def open_reader(source: Source, limits: Limits | None = None) -> Reader:
    """Open a file for reading, by its content. Raises `EmptyFile`, `WrongFileType` or `BrokenFile`."""
    limits = limits or Limits()
    file = source.open()
    head = file.read(_HEAD)
    file.seek(0)
    if not head:
        raise EmptyFile(f"{source.label} is empty", hint=_HINT)
    if head.startswith(b"PAR1"):
        return Reader(file, PARQUET.name, "row", PARQUET.read(file, limits.of(size_of(file))))
    if head.startswith(b"\x1f\x8b"):
        limits = limits.of(size_of(file))
        head = _first_bytes(unpacked(file))
        file.seek(0)
        kind = text_format(head, source.label.removesuffix(GZIPPED), source.label)
        return Reader(file, f"{kind.name}{GZIPPED}", "line", kind.read(unpacked(file), limits))
    kind = text_format(head, source.label, source.label)
    return Reader(file, kind.name, "line", kind.read(file, limits))


def _first_bytes(stream: BinaryIO) -> bytes:
    try:
        return stream.read(_HEAD)
    except GZIP_ERRORS as error:
        raise damaged_gzip(error, 0) from error


def text_format(head: bytes, name: str, label: str) -> Format:
    """The format of a text file that begins so. Raises `EmptyFile` or `WrongFileType`."""
    for magic, what in _OTHER_TYPES:
        if head.startswith(magic):
            raise WrongFileType(f"{label} is {what}", hint=_HINT)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise WrongFileType(f"{label} is UTF-16 text", code="invalid_encoding", hint="Save the file as UTF-8.")
    if b"\x00" in head:
        raise WrongFileType(f"{label} is a binary file of an unknown type", hint=_HINT)
    body = head.removeprefix(BOM).lstrip()
    if not body:
        raise EmptyFile(f"{label} has no rows", hint=_HINT)
    if body.startswith(b"{"):
        if body.split(b"\n", 1)[0].strip() == b"{":
            raise WrongFileType(
                f"{label} is one JSON document over several lines, not JSON lines",
                hint="Write one object per line: jq -c . FILE > rows.jsonl",
            )
        return JSONL
    if body.startswith(b"["):
        return JSON
    if name.lower().endswith((*JSONL.endings, *JSON.endings)):
        return JSONL  # broken from its first line on; the reader names that line
    _, columns = split_header(body.split(b"\n", 1)[0].decode(errors="replace").rstrip("\r"))
    if len(columns) < 2 and not name.lower().endswith(CSV.endings):
        raise WrongFileType(f"{label} is text, but neither JSON lines nor CSV with a header", hint=_HINT)
    return CSV
