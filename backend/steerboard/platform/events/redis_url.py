"""One spelling of the Redis URL for redis-py, whichever one the settings use (Celery writes sockets differently)."""

from __future__ import annotations

import redis

_SECONDS = 1.0


def client_url(url: str) -> str:
    """`redis+socket:///path` as `unix:///path`; others as they are."""
    prefix = "redis+socket://"
    return "unix://" + url.removeprefix(prefix) if url.startswith(prefix) else url


def connect(url: str, seconds: float = _SECONDS) -> redis.Redis:
    """A client that gives up quickly. Raises ValueError for an empty or unknown URL."""
    return redis.Redis.from_url(client_url(url), socket_timeout=seconds, socket_connect_timeout=seconds)
