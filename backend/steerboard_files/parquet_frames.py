"""How the decoder of parquet speaks: frames on its standard output; the bytes of the file come to its standard input.

A frame is `FRAME` (kind, a number, bytes of content) and the content.
"""

from __future__ import annotations

import struct
from enum import IntEnum

FRAME = struct.Struct("<BQQ")
READ = struct.Struct("<Q")
"""Precedes the bytes that answer `Kind.READ`; fewer than requested at the end of the file."""


class Kind(IntEnum):
    """`READ` has no content: its number is an offset, its size the bytes wanted."""

    READ = 1
    SCHEMA = 2  # an Arrow IPC schema, once, before any row
    ROWS = 3  # an Arrow IPC record batch of a few megabytes at most
    LONG_ROW = 4  # one row that is skipped; the number is about how many bytes it has
    BROKEN = 5  # the last frame; a reason
    MEMORY = 6  # the last frame; where, as the end of a sentence
    END = 7  # the last frame of a file that was read to its end
    GONE = 8  # never sent: what the reader makes of a decoder that ended without a last frame
