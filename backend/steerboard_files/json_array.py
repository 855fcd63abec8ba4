"""One JSON array of objects, read an element at a time: what its size is does not matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from steerboard_files.errors import BrokenFile
from steerboard_files.jsonl import parse_object, takes_too_much
from steerboard_files.lines import BOM, GZIP_ERRORS, damaged_gzip, unpacks_to_too_much
from steerboard_files.records import Limits, Record

_PIECE = 1 << 20
_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT = rb'(?:[^"{}\[\]]++|%b)' % _STRING
# A whole string, or a byte that matters outside of one. A lone quote begins a string that is not all here yet.
_MARK = re.compile(_STRING + rb'|["{}\[\],]', re.DOTALL)
# Within an element: on to a bracket that has others inside, or to what is not all here yet.
_INSIDE = re.compile(rb"(?:%b|[{\[]%b*+[}\]])*+" % (_FLAT, _FLAT), re.DOTALL)
_ENDED = "the array ends too early"


def read_json_array(stream: BinaryIO, limits: Limits) -> Iterator[Record]:
    """One record an element, with the line on which it begins.

    An element that is not a valid object comes out as a problem and does not end the stream. Where it is not certain
    where an element ends, the whole file is at fault: `BrokenFile`, as for a damaged gzip stream or an element of more
    than `limits.line` bytes. Raises `FileTooLarge` beyond `limits.unpacked` and `ImportOutOfMemory` like `read_jsonl`.
    """
    window = _Window(stream, limits)
    if window.next() != b"[":
        raise window.broken("it is not a JSON array")
    window.advance(1)
    ended = window.next() == b"]"
    while not ended:
        window.next()
        line = window.line
        element = window.element()
        try:
            record = parse_object(element)
        except MemoryError:
            raise takes_too_much(line) from None
        yield line, record
        delimiter = window.next()
        if delimiter not in (b",", b"]"):
            raise window.broken("missing comma after an element" if delimiter else _ENDED)
        ended = delimiter == b"]"
        window.advance(0 if ended else 1)
    window.advance(1)
    if window.next():
        raise window.broken("there is data after the end of the array")


class _Window:
    """The bytes of a stream from a place on, which only moves forward; `line` is the line of this place."""

    def __init__(self, stream: BinaryIO, limits: Limits) -> None:
        self.line = 1
        self._stream, self._limits = stream, limits
        self._data = bytearray()
        self._at = self._read = 0
        self._more()
        if self._data.startswith(BOM):
            del self._data[: len(BOM)]

    def broken(self, reason: str) -> BrokenFile:
        return BrokenFile(
            f"the file is not valid JSON on line {self.line}: {reason}",
            code="broken_json",
            hint="If the copy was interrupted, fetch the file again.",
        )

    def advance(self, count: int) -> None:
        self.line += self._data.count(b"\n", self._at, self._at + count)
        self._at += count

    def next(self) -> bytes:
        """The next byte that is not space, which is left there; empty at the end."""
        while True:
            space = _SPACE.match(self._data, self._at)
            assert space is not None
            self.advance(space.end() - self._at)
            if self._at < len(self._data):
                return bytes(self._data[self._at : self._at + 1])
            if not self._more():
                return b""

    def element(self) -> bytes:
        """All of the element that begins here, space behind a number included. Moves to behind it."""
        depth, look = 0, self._at
        while True:
            if depth:
                inside = _INSIDE.match(self._data, look)
                assert inside is not None
                look = inside.end()
            mark = _MARK.search(self._data, look)
            if mark is None or mark[0] == b'"':
                seen = (mark.start() if mark else len(self._data)) - self._at
                if not self._more():
                    raise self.broken(_ENDED)
                look = self._at + seen
                continue
            look = mark.end()
            if look - self._at > self._limits.line:
                raise self._too_long()
            match bytes(mark[0]):
                case b"{" | b"[":
                    if not depth and mark.start() != self._at:
                        raise self.broken("missing comma after an element")
                    depth += 1
                case b"}" | b"]" if depth:
                    depth -= 1
                    if not depth:
                        return self._taken(look)
                case b"," | b"]" if not depth:
                    return self._taken(mark.start())
                case b"}":
                    raise self.broken("unmatched closing brace")

    def _taken(self, end: int) -> bytes:
        taken = bytes(self._data[self._at : end])
        if not taken:
            raise self.broken("an element is missing")
        self.advance(len(taken))
        return taken

    def _more(self) -> bool:
        """Read on, and forget what is behind."""
        if len(self._data) - self._at > self._limits.line:
            raise self._too_long()
        del self._data[: self._at]
        self._at = 0
        try:
            piece = self._stream.read(_PIECE)
        except GZIP_ERRORS as error:
            raise damaged_gzip(error, self.line) from error
        self._read += len(piece)
        if self._read > self._limits.unpacked:
            raise unpacks_to_too_much(self._limits)
        self._data += piece
        return bool(piece)

    def _too_long(self) -> BrokenFile:
        return BrokenFile(
            f"the element on line {self.line} has more than {self._limits.line:,} bytes",
            code="line_too_long",
            hint="Leave it out, or write one object per line: jq -c '.[]' FILE > rows.jsonl",
        )
