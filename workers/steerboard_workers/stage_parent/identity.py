"""What others see of a fork in /proc: its command line, and the mark by which a lost process is found and ended.

Both show memory that the kernel filled when the program was started. A fork has its parent's, so it is written over in
place, within the room that the parent was started with.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

MARK = "STEERBOARD_STAGE"
# Longer than any mark, and than any command line that is worth reading.
MARK_ROOM = "-" * 200
TITLE_ROOM = " " * 2000
# Fields of /proc/self/stat, counted from the field after the command's name.
_ARGUMENTS, _ENVIRONMENT = (45, 46), (47, 48)


class NoRoom(Exception):
    """The memory is not there, not ours to change, or too small."""


def set_mark(mark: str) -> None:
    """Raises `NoRoom`."""
    start, end = _area(_ENVIRONMENT)
    held = ctypes.string_at(start, end - start)
    name = f"{MARK}=".encode()
    place = held.find(name) if held.startswith(name) else held.find(b"\0" + name) + 1
    room = held.find(b"\0", place) - place
    value = name + mark.encode()
    if not held.startswith(name, place) or len(value) > room:
        raise NoRoom(f"no room for the mark {mark}")
    ctypes.memmove(start + place, value.ljust(room, b"\0"), room)
    if value not in Path("/proc/self/environ").read_bytes().split(b"\0"):
        raise NoRoom("the mark does not show")


def set_command_line(words: list[str]) -> None:
    """Cut where the room ends. Raises `NoRoom`."""
    start, end = _area(_ARGUMENTS)
    room = end - start
    line = b"".join(word.encode(errors="replace") + b"\0" for word in words)
    ctypes.memmove(start, line[: room - 1].ljust(room, b"\0"), room)


def _area(fields: tuple[int, int]) -> tuple[int, int]:
    try:
        values = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = (int(values[field]) for field in fields)
    except (OSError, ValueError, IndexError) as error:
        raise NoRoom(str(error)) from error
    if not 0 < start < end:
        raise NoRoom("the kernel does not say where it is")
    return start, end
