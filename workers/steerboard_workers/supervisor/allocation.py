"""How a stage on a CPU gets memory for its tensors.

glibc 2.36's heap breaks up under tensors of ever other sizes: it grows, and searching it took 17% of a run's time in
the end. With each large tensor's pages fresh from the kernel, clearing them takes as long. jemalloc needs neither, so a
machine that trains on CPUs should have it. What is largest, `alignment.scratch` keeps by itself.
"""

from __future__ import annotations

from ctypes.util import find_library
from functools import cache

# One arena, so that one thread's memory serves the others. What was free for half a second may be taken by the kernel
# (MADV_FREE) and is joined with free memory next to it, without which memory breaks up here, too; it is not given back.
_CONF = "narenas:1,thp:always,oversize_threshold:0,dirty_decay_ms:500,muzzy_decay_ms:-1"


@cache
def allocation() -> dict[str, str]:
    """Variables for its environment: jemalloc where it is installed, else huge pages for large tensors."""
    library = find_library("jemalloc")
    if library is None:
        return {"THP_MEM_ALLOC_ENABLE": "1"}
    return {"LD_PRELOAD": library, "MALLOC_CONF": _CONF}
