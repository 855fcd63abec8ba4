"""Bringing answers to the database while they are written, not more often than people can see."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from typing import Any

from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.playground import claims
from steerboard.playground.claims import Claim
from steerboard.playground.tables import Comparison
from steerboard_files.texts import storable
from steerboard_workers.interactive.leases import Stopping, Wanted

FLUSH_SECONDS = 0.1


class AnswerWriter:
    """Collects changes of answers by place. Every flush is fenced, so it also is where a cancel is noticed:
    it raises `LeaseLost`, and `Stopping` when the worker is to stop. `wanted` is for where nothing is written for long.
    For one thread."""

    def __init__(self, sessions: sessionmaker[Session], claim: Claim[Comparison], stopping: threading.Event) -> None:
        self._sessions = sessions
        self._claim = claim
        self._stopping = stopping
        self.wanted = Wanted(sessions, claim, stopping)
        self._changes: dict[int, dict[str, Any]] = defaultdict(dict)
        self._flushed = 0.0

    def set(self, place: int, **values: Any) -> None:
        if "text" in values:
            values["text"] = storable(values["text"])
        self._changes[place].update(values)

    def now(self, place: int, **values: Any) -> None:
        self.set(place, **values)
        self.flush()

    def flush_sometimes(self) -> None:
        """Flush every `FLUSH_SECONDS` at most."""
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._stopping.is_set():
            raise Stopping
        with transaction(self._sessions) as session:
            claims.write_answers(session, self._claim, self._changes)
        self._changes.clear()
        self._flushed = time.monotonic()
