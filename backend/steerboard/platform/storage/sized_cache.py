"""What was worked out of immutable things, kept in this process: the most recently used, up to so many bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar, cast

from cachetools import LRUCache


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


class SizedCache:
    """Keys name versions that never change, so nothing is ever invalidated. Safe for threads."""

    def __init__(self, limit_bytes: int) -> None:
        self._lock = threading.Lock()
        # One that is larger than the limit is kept alone.
        self._kept: LRUCache[Hashable, Sized] = LRUCache(limit_bytes, lambda value: min(value.nbytes, limit_bytes))

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """What `key` names. Two threads may load the same one at once; both are right."""
        with self._lock:
            if key in self._kept:
                return cast(T, self._kept[key])
        loaded = load()
        with self._lock:
            self._kept[key] = loaded
        return loaded
