"""The order of the worker's work: comparisons, of several projects side by side, and small steps of a curve when there
is none."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from functools import partial

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.playground import claims
from steerboard.playground.claims import Claim
from steerboard.playground.tables import Comparison
from steerboard_workers.interactive.comparisons import ComparisonServer
from steerboard_workers.interactive.curves import CurveServer
from steerboard_workers.interactive.leases import LeaseHolder, Stopping
from steerboard_workers.interactive.models import ModelCache
from steerboard_workers.interactive.remote import RemoteAnswers

log = logging.getLogger("steerboard.interactive")

# Projects that are answered side by side. Within one, comparisons wait for each other.
_PROJECTS_AT_ONCE = 4
_CURVE = None


class Serving:
    """`run` and `close` are for one thread. What hangs in one project holds up no other: each is served in a thread of
    its own, by processes of its own models."""

    def __init__(
        self,
        settings: Settings,
        sessions: sessionmaker[Session],
        lease_holder: LeaseHolder,
        stopping: threading.Event,
        wake: threading.Event,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._lease_holder = lease_holder
        self._stopping = stopping
        self._wake = wake
        self._models = ModelCache(
            sessions,
            ArtifactStore(settings.artifact_url),
            LocalCache(settings.home / "cache", settings.cache_mb),
            settings,
        )
        self._models.on_change = lease_holder.beat_soon
        lease_holder.holds = self._models.holds
        remote = RemoteAnswers(sessions, settings, lease_holder, stopping)
        self._comparisons = ComparisonServer(sessions, self._models, remote, stopping)
        self._curves = CurveServer(sessions, self._models, lease_holder, stopping)
        # Threads by project, and that of the curve. Each takes itself out before it wakes this one.
        self._lock = threading.Lock()
        self._threads: dict[uuid.UUID | None, threading.Thread] = {}

    def run(self) -> None:
        """Serves until the worker is stopped. Raises what the database does not answer."""
        while not self._stopping.is_set():
            self._wake.clear()
            self._take_comparisons()
            if not self._busy():
                self._begin(_CURVE, self._curves.step)
            self._wake.wait(self._settings.poll_seconds)

    def close(self) -> None:
        """Wait for the threads, which stop by themselves, and end the models' processes."""
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()
        self._models.close()

    def _take_comparisons(self) -> None:
        """Begin with all that can be served now."""
        while len(served := [project for project in self._busy() if project is not None]) < _PROJECTS_AT_ONCE:
            with transaction(self._sessions) as session:
                owner, seconds = self._lease_holder.owner, self._lease_holder.lease_seconds
                claim = claims.claim_next(session, Comparison, owner, seconds, beside=served)
            if claim is None:
                return
            self._lease_holder.hold(claim)
            self._begin(claim.project_id, partial(self._serve, claim))

    def _busy(self) -> list[uuid.UUID | None]:
        with self._lock:
            return list(self._threads)

    def _begin(self, key: uuid.UUID | None, work: Callable[[], bool]) -> None:
        """Do `work` in a thread. It returns whether there may be more of it."""

        def run() -> None:
            more = False
            try:
                more = work()
            except Stopping:
                pass
            except SQLAlchemyError as error:
                log.warning("the database does not answer: %s", error)
            except Exception:
                log.exception("the worker continues after an unexpected error")
            with self._lock:
                del self._threads[key]
            if more:
                self._wake.set()

        thread = threading.Thread(target=run, name="comparison" if key else "curve", daemon=True)
        with self._lock:
            self._threads[key] = thread
        thread.start()

    def _serve(self, claim: Claim[Comparison]) -> bool:
        try:
            self._comparisons.serve(claim)
        except Stopping:
            raise  # still held, so that it is given back
        except BaseException:
            self._lease_holder.drop(claim)  # its lease runs out, and it is taken up again
            raise
        self._lease_holder.drop(claim)
        return True
