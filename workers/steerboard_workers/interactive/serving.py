"""The order of the worker's work: texts of endpoints to score, then comparisons, then a small step of a curve."""

from __future__ import annotations

import logging
import os
import threading

import torch
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import transaction
from steerboard.platform.local_cache import LocalCache
from steerboard.platform.settings import Settings
from steerboard.playground import claims
from steerboard.playground.tables import Comparison
from steerboard_workers.interactive.comparisons import ComparisonServer
from steerboard_workers.interactive.curves import CurveServer
from steerboard_workers.interactive.keeping import Keeper, Stopping
from steerboard_workers.interactive.models import ModelCache, default_limit
from steerboard_workers.interactive.remote import RemoteAnswers

log = logging.getLogger("steerboard.interactive")


class Serving:
    """For one thread, which computes everything."""

    def __init__(
        self,
        settings: Settings,
        sessions: sessionmaker[Session],
        keeper: Keeper,
        stopping: threading.Event,
        wake: threading.Event,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._keeper = keeper
        self._stopping = stopping
        self._wake = wake
        torch.set_num_threads(threads())
        limit = settings.interactive_memory_mb
        models = ModelCache(
            sessions,
            ArtifactStore(settings.artifact_url),
            LocalCache(settings.home / "cache", settings.cache_mb),
            limit << 20 if limit is not None else default_limit(),
        )
        models.on_change = keeper.beat_soon
        keeper.holds = models.holds
        self._remote = RemoteAnswers(sessions, settings, keeper, stopping, wake)
        self._comparisons = ComparisonServer(sessions, models, self._remote, stopping)
        self._curves = CurveServer(sessions, models, keeper, stopping)
        log.info("ready: %d threads, %d MB for models", threads(), models.limit >> 20)

    def run(self) -> None:
        """Until the worker is stopped. Raises what the database does not answer."""
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._remote.finish_texts()
                if not self._serve_comparison() and not self._curves.step():
                    self._wake.wait(self._settings.poll_seconds)
            except Stopping:
                return

    def _serve_comparison(self) -> bool:
        with transaction(self._sessions) as session:
            claim = claims.claim_next(session, Comparison, self._keeper.owner, self._keeper.lease_seconds)
        if claim is None:
            return False
        self._keeper.hold(claim)
        try:
            self._comparisons.serve(claim)
        except Stopping:
            raise  # still held, so that it is given back
        except BaseException:
            self._keeper.drop(claim)  # its lease runs out, and it is taken up again
            raise
        self._keeper.drop(claim)
        return True


def threads() -> int:
    """Of torch: training keeps at least as many cores."""
    return max(1, (os.cpu_count() or 2) // 2)
