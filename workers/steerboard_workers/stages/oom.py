"""Recognises errors that mean out of memory, whichever library raised them."""

from __future__ import annotations

import errno

SIGNS = (
    "can't allocate memory",
    "cannot allocate memory",
    "out of memory",
    "bad_alloc",
    # A library that no longer fits into the address space.
    "failed to map segment",
    # Its stack does not fit.
    "can't start new thread",
)


def ran_out_of_memory(error: BaseException) -> bool:
    no_memory = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or no_memory or any(sign in str(error).lower() for sign in SIGNS)


def first_line(error: BaseException) -> str:
    """An error's message, shortened for people; a `MemoryError` often has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]
