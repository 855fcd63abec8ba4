"""What was worked out of immutable things, kept in this process: the most recently used, up to so many bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar, cast


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


class SizedCache:
    """Keys name versions that never change, so nothing is ever invalidated. Safe for threads."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Sized] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """What `key` names. Two threads may load the same one at once; both are right."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(T, self._kept[key])
        loaded = load()
        with self._lock:
            known = self._kept.pop(key, None)
            self._bytes += loaded.nbytes - (0 if known is None else known.nbytes)
            self._kept[key] = loaded
            while self._bytes > self._limit and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return loaded
