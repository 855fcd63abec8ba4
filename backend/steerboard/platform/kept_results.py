"""Results of slow reads, kept for equal requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class KeptResults(Generic[T]):
    """Equal requests compute once: the first does, and those that come meanwhile or soon after get its result."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._results: OrderedDict[Hashable, _Result[T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """`key` holds everything that the result depends on. What `compute` raises is not kept."""
        with self._lock:
            result = self._results.setdefault(key, _Result())
            self._results.move_to_end(key)
            if len(self._results) > self._most:
                self._results.popitem(last=False)
        with result.lock:
            if result.value is None:
                result.value = compute()
            return result.value


class _Result(Generic[T]):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: T | None = None
