"""Keeping the lease of one claimed run, from a thread of its own, whatever the rest of the supervisor is doing."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.runs.state import claims
from steerboard.runs.state.claims import Claim
from steerboard_contracts import guardian
from steerboard_contracts.watching.control import Control

log = logging.getLogger(__name__)

# The stage is gone before another worker may start the next attempt: the rest of the lease is for killing it.
STAGE_SHARE = 0.8
# How soon a cancellation is seen: someone waits for it.
_LOOK_SECONDS = 1.0


class LeaseKeeper:
    """Renews every `heartbeat_seconds` and passes `on_renewed` how long the stage may run. Looks every second whether
    the run is cancelled, paused or changed.

    `on_control` hears each time what is asked of the stage. `lost` and `cancelled` are events to look at; `on_end` is
    called once, from the keeper's thread, when either is set. Failing to reach the database is neither: the guardian's
    deadline settles that.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        claim: Claim,
        *,
        lease_seconds: float,
        heartbeat_seconds: float,
    ) -> None:
        self._sessions = sessions
        self._claim = claim
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = min(heartbeat_seconds, lease_seconds / 4)
        self._closed = threading.Event()
        # In the context of its maker, so that its lines of the log carry the run's id.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._keep,), name="lease", daemon=True)
        self.lost = threading.Event()
        self.cancelled = threading.Event()
        self.deadline = guardian.now() + STAGE_SHARE * lease_seconds
        self.on_renewed: Callable[[float], None] = lambda deadline: None
        self.on_end: Callable[[], None] = lambda: None
        self.on_control: Callable[[Control], None] = lambda control: None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join(timeout=self._lease_seconds)

    def check(self) -> None:
        """Raises `LeaseLost` once the lease is known to be lost."""
        if self.lost.is_set():
            raise LeaseLost(f"attempt {self._claim.attempt} of run {self._claim.run_id} no longer holds its lease")

    def _keep(self) -> None:
        due = guardian.now()
        while not self._closed.wait(min(_LOOK_SECONDS, self._heartbeat_seconds)):
            # Taken before asking: however long the answer takes, the lease is good for that much from here.
            asked = guardian.now()
            try:
                with transaction(self._sessions) as session:
                    if asked >= due:
                        renewal = claims.renew(session, self._claim, self._lease_seconds)
                    else:
                        renewal = claims.Renewal(False, claims.wishes_of(session, self._claim))
            except LeaseLost:
                # Also right after the ending was written, when no one minds any more.
                self.lost.set()
                self.on_end()
                return
            except SQLAlchemyError as error:
                log.warning("could not renew the lease of run %s: %s", self._claim.run_id, error)
                continue
            if renewal.renewed:
                due = asked + self._heartbeat_seconds
                self.deadline = asked + STAGE_SHARE * self._lease_seconds
                self.on_renewed(self.deadline)
            self.on_control(renewal.wishes.control)
            if renewal.wishes.cancel and not self.cancelled.is_set():
                self.cancelled.set()
                self.on_end()
