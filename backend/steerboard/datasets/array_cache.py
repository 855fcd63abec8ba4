"""Arrays of rewards and of search results, shared by the requests of this process."""

from __future__ import annotations

from steerboard.platform.storage.sized_cache import SizedCache

ARRAYS = SizedCache(256 * 2**20)
