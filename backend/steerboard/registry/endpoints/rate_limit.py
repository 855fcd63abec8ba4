"""When the next request may go: a token bucket for the rate, a pause that an endpoint asked for, and backoff."""

from __future__ import annotations

import datetime as dt
import email.utils
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from steerboard.registry.endpoints.failures import ChatFailed

_BASE_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
_LONGEST_PAUSE = 300.0


class Pace:
    """Shared by all threads that ask one endpoint. `wait` returns False immediately when `stopping` is set."""

    def __init__(
        self,
        requests_per_minute: float | None,
        stopping: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = requests_per_minute / 60 if requests_per_minute else None
        # A second's worth at once, and never less than one request.
        self._most = max(1.0, self._per_second or 1.0)
        self._tokens = self._most
        self._stopping = stopping
        self._clock = clock
        self._at = clock()
        self._paused_until = self._at
        self._lock = threading.Lock()

    def wait(self) -> bool:
        """Waits until a request may be sent. False when the work is being given up."""
        while not self._stopping.is_set():
            seconds = self.take()
            if seconds <= 0:
                return True
            self._stopping.wait(seconds)
        return False

    def take(self) -> float:
        """0 when a request may go now, or else the seconds after which to ask again."""
        with self._lock:
            now = self._clock()
            if now < self._paused_until:
                return self._paused_until - now
            if self._per_second is None:
                return 0.0
            self._tokens = min(self._most, self._tokens + (now - self._at) * self._per_second)
            self._at = now
            if self._tokens >= 1.0 - 1e-9:
                self._tokens -= 1.0
                return 0.0
            return (1.0 - self._tokens) / self._per_second

    def pause(self, seconds: float) -> None:
        """No one sends requests for this long: the endpoint asked for it, and means all of us."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    def rest(self, failure: ChatFailed, attempt: int) -> float:
        """Seconds before the one who made attempt number `attempt` (from 1) asks again."""
        if failure.pause and failure.reason in ("http_429", "http_503"):
            self.pause(failure.pause)
        return backoff(attempt) if failure.pause is None else failure.pause


def backoff(attempt: int, draw: Callable[[], float] = random.random) -> float:
    """Seconds before the attempt after number `attempt` (from 1): exponential, with full jitter, at most 30."""
    return min(_LONGEST_SECONDS, _BASE_SECONDS * 2.0 ** min(attempt - 1, 30)) * draw()


def retry_after(headers: Any) -> float | None:
    """Seconds that `Retry-After` (seconds or a date) or `retry-after-ms` ask for, within bounds; None without them."""
    given = headers.get("retry-after-ms")
    try:
        if given is not None:
            return min(max(float(given) / 1000, 0.0), _LONGEST_PAUSE)
        given = headers.get("retry-after")
        if given is None:
            return None
        try:
            seconds = float(given)
        except ValueError:
            date = email.utils.parsedate_to_datetime(given)
            seconds = (date.astimezone(dt.UTC) - dt.datetime.now(dt.UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_PAUSE) if seconds == seconds else None
