"""The worker's row, and the leases of what it works for, from a thread that computes nothing."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import new_id, transaction
from steerboard.platform.settings import Settings
from steerboard.playground import claims
from steerboard.playground.claims import POOL, Claim
from steerboard_workers import registration
from steerboard_workers.gpus import GpuWatch
from steerboard_workers.liveness import say_alive
from steerboard_workers.worker_process import shown_name, survive

# People wait for an answer: they must not wait long for a worker that is dead.
_LONGEST_LEASE = 10.0
# How often the database is queried whether an answer is still wanted.
_ASK_SECONDS = 0.5


class Stopping(Exception):
    """The worker is asked to stop; what it serves goes back untouched."""


class Wanted:
    """Call it while waiting: raises `Stopping`, and `LeaseLost` soon after no one wants what the claim is about any
    more. For one thread."""

    def __init__(self, sessions: sessionmaker[Session], claim: Claim[Any], stopping: threading.Event) -> None:
        self._sessions = sessions
        self._claim = claim
        self._stopping = stopping
        self._asked = time.monotonic()

    def __call__(self) -> None:
        if self._stopping.is_set():
            raise Stopping
        if time.monotonic() - self._asked >= _ASK_SECONDS:
            with transaction(self._sessions) as session:
                claims.check(session, self._claim)
            self._asked = time.monotonic()


class LeaseHolder:
    """`hold` what is worked for as often as needed, `drop` it as often: its lease is renewed in between."""

    def __init__(
        self, sessions: sessionmaker[Session], settings: Settings, devices: list[str], name: str | None
    ) -> None:
        self.id = new_id()
        self.name = shown_name(name)
        self.lease_seconds = min(settings.lease_seconds, _LONGEST_LEASE)
        self.holds: Callable[[], list[dict[str, str]]] = list
        self._sessions = sessions
        self._settings = settings
        self._devices = devices
        self._gpus = GpuWatch(devices)
        self._heartbeat_seconds = min(settings.heartbeat_seconds, self.lease_seconds / 4)
        self._claims: Counter[Claim[Any]] = Counter()
        self._lock = threading.Lock()
        self._now = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="leases", daemon=True)

    @property
    def owner(self) -> str:
        return str(self.id)

    def start(self) -> None:
        self._thread.start()

    def beat_soon(self) -> None:
        """The row's state has changed."""
        self._now.set()

    def hold(self, claim: Claim[Any]) -> None:
        with self._lock:
            self._claims[claim] += 1

    def drop(self, claim: Claim[Any]) -> None:
        with self._lock:
            self._claims[claim] -= 1
            self._claims += Counter[Claim[Any]]()  # forget those at zero

    def held(self) -> list[Claim[Any]]:
        with self._lock:
            return list(self._claims)

    def close(self) -> None:
        """Leave the list of workers."""
        self._closing.set()
        self._now.set()
        self._thread.join()
        survive(lambda: registration.leave(self._sessions, self.id))

    def _keep(self) -> None:
        while not self._closing.is_set():
            survive(self._beat)
            say_alive(self._settings)
            self._now.wait(self._heartbeat_seconds)
            self._now.clear()

    def _beat(self) -> None:
        ids: list[uuid.UUID] = [claim.id for claim in self.held()]
        devices = {"ids": self._devices, "gpus": [gpu.as_dict() for gpu in self._gpus.sample()]}
        with transaction(self._sessions) as session:
            claims.renew(session, self.owner, ids, self.lease_seconds)
            registration.beat(session, self.id, self.name, POOL, holds=self.holds(), devices=devices)
