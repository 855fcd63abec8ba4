"""Recognises errors that mean out of memory, whichever library raised them."""

from __future__ import annotations

import errno
import resource

import psutil

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

_LITTLE, _PRODUCT = 64 << 20, 1 << 30


def ran_out_of_memory(error: BaseException) -> bool:
    no_memory = isinstance(error, OSError) and error.errno == errno.ENOMEM
    signed = any(sign in str(error).lower() for sign in SIGNS)
    # What native code raises, by oversight, when it was refused memory; or when it is broken in another way. oneDNN
    # does so for a product's working memory, which may be a gigabyte.
    unsaid = (isinstance(error, SystemError) and _near_limit(_LITTLE)) or (
        "could not create a primitive" in str(error) and _near_limit(_PRODUCT)
    )
    return isinstance(error, MemoryError) or no_memory or signed or unsaid


def _near_limit(left: int) -> bool:
    """Whether this process has less than `left` bytes left of what its guardian lets it allocate."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return allowed != resource.RLIM_INFINITY and allowed - psutil.Process().memory_info().data < left


def first_line(error: BaseException) -> str:
    """An error's message, shortened for people; a `MemoryError` often has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]
