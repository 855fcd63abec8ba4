"""By what an error can be told to be for want of memory, whoever raised it."""

from __future__ import annotations

import errno

SIGNS = (
    "can't allocate memory",
    "cannot allocate memory",
    "out of memory",
    "bad_alloc",
    # A library that no longer fits into the address space.
    "failed to map segment",
)


def ran_out_of_memory(error: BaseException) -> bool:
    no_memory = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or no_memory or any(sign in str(error).lower() for sign in SIGNS)


def first_line(error: BaseException) -> str:
    """What an error says, as far as people want to read it; a `MemoryError` often says nothing."""
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]
