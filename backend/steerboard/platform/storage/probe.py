"""Whether the artifact store answers, for health: asked at most every few seconds, once at a time, and not for long."""

from __future__ import annotations

import threading
import time

from steerboard.platform.storage.protocol import open_storage
from steerboard_contracts.errors import SteerboardError

_SECONDS = 15.0


class StoreProbe:
    def __init__(self, url: str) -> None:
        self._storage = open_storage(url, patient=False)
        self._lock = threading.Lock()
        self._asked = -_SECONDS
        self._answers = True

    def answers(self) -> bool:
        with self._lock:
            if time.monotonic() - self._asked >= _SECONDS:
                try:
                    self._storage.check()
                    self._answers = True
                except (SteerboardError, OSError):
                    self._answers = False
                self._asked = time.monotonic()
            return self._answers
