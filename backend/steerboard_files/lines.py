"""Bounded lines of a binary stream, and text decoding with the reason where it fails."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from steerboard_files.errors import BrokenFile, FileTooLarge
from steerboard_files.records import Limits, Problem

BOM = b"\xef\xbb\xbf"
_SKIP = 1 << 16
# No file has these; a small gzip file may unpack to minutes of them.
_LONGEST_SKIPPED = 1 << 30
_BLANK, _BLANK_EACH = 100_000, 100
GZIP = b"\x1f\x8b"
GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)


def unpacked(file: BinaryIO) -> BinaryIO:
    """The content of a gzip file as a buffered stream."""
    # Without a mode, GzipFile takes the file's own, and an upload's spooled file claims to be for writing.
    return cast(BinaryIO, io.BufferedReader(gzip.GzipFile(fileobj=file, mode="rb"), 1 << 20))


def size_of(file: BinaryIO) -> int:
    """The size in bytes; the place in the file stays what it was."""
    at = file.tell()
    size = file.seek(0, io.SEEK_END)
    file.seek(at)
    return size


def damaged_gzip(error: Exception, line: int) -> BrokenFile:
    return BrokenFile(
        f"the gzip stream is damaged after line {line}: {error}",
        hint="The copy was probably interrupted; fetch the file again.",
    )


def unpacks_to_too_much(limits: Limits) -> FileTooLarge:
    return FileTooLarge(
        f"the file unpacks to more than {limits.unpacked:,} bytes",
        hint=f"Import it in several parts. A file may unpack to at most {limits.ratio} times its size.",
    )


def bounded_lines(stream: BinaryIO, limits: Limits) -> Iterator[tuple[int, bytes | Problem]]:
    """Lines with their number from 1, without a byte order mark, line ends kept.

    A line over `limits.line` comes out as a `Problem` and is skipped in small pieces.
    Raises `BrokenFile` for a damaged gzip stream, a line without end, or a file that is nearly all blank lines, and
    `FileTooLarge` beyond `limits.unpacked`.
    """
    number = total = blank = written = 0
    try:
        while line := stream.readline(limits.line + 1):
            number += 1
            total += len(line)
            if line.isspace():
                blank += 1 + len(line) // 256
                if blank > _BLANK + _BLANK_EACH * written:
                    raise BrokenFile(f"nearly all of the first {number:,} lines are blank", hint="Leave them out.")
            else:
                written += 1
            if number == 1 and line.startswith(BOM):
                line = line[len(BOM) :]
            if len(line) > limits.line and not line.endswith(b"\n"):
                length = len(line)
                del line
                while piece := stream.readline(_SKIP):
                    length += len(piece)
                    if piece.endswith(b"\n"):
                        break
                    if length > _LONGEST_SKIPPED:
                        raise BrokenFile(f"line {number} has more than {_LONGEST_SKIPPED:,} bytes and no end")
                total += length
                reason = f"is {length:,} bytes long; a line may have at most {limits.line:,}"
                yield number, Problem("line_too_long", reason)
            else:
                yield number, line
            if total > limits.unpacked:
                raise unpacks_to_too_much(limits)
    except GZIP_ERRORS as error:
        raise damaged_gzip(error, number) from error


def decoded(line: bytes) -> str | Problem:
    """Strict UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        bad = line[error.start]
        return Problem(
            "invalid_encoding",
            f"is not valid UTF-8: byte 0x{bad:02x} at position {error.start + 1}; save the file as UTF-8",
        )
