"""Computed values stay in the process up to so many bytes, also under concurrent loads."""

from __future__ import annotations

import threading

import numpy as np

from steerboard.platform.storage.sized_cache import SizedCache
from support.patience import PATIENCE


def test_two_threads_that_load_the_same_array_at_once_both_get_it() -> None:
    cache = SizedCache(1000)
    both_load = threading.Barrier(2, timeout=PATIENCE)
    got: list[float] = []

    def load() -> np.ndarray:
        both_load.wait()
        return np.arange(5.0)

    threads = [threading.Thread(target=lambda: got.append(cache.get("k", load).sum())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [10.0, 10.0]


def test_the_least_recently_used_one_goes_when_there_is_no_room() -> None:
    cache = SizedCache(3 * 80)
    loads: list[str] = []

    def get(key: str) -> None:
        def load() -> np.ndarray:
            loads.append(key)
            return np.zeros(10)

        cache.get(key, load)

    for key in "abc":
        get(key)
    get("a")
    get("d")  # `b` is the oldest now
    get("a")
    get("b")
    assert "".join(loads) == "abcdb"


def test_one_that_is_larger_than_the_limit_is_kept_alone() -> None:
    cache, loads = SizedCache(100), []

    def get(key: str, size: int) -> None:
        cache.get(key, lambda: loads.append(key) or np.zeros(size, np.uint8))

    get("small", 60)
    get("large", 1000)
    get("large", 1000)
    get("small", 60)
    assert loads == ["small", "large", "small"]
