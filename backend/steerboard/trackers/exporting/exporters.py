"""Exporting, alongside everything else that the server does.

Any number of API processes may run exporters. One leases a tracker, starts a process for it, and sends it batches
until it has no active runs, or others wait. No run waits for it, and none fails by it: what is exported is read
from the database. A process that is killed in between leaves a lease that expires, and what the tracker had not
confirmed is sent again; so it arrives at least once, and trackers drop the steps that they have.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from dataclasses import dataclass

from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.polling import PollingThreads
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.runs.state.states import ENDED
from steerboard.runs.tables import Run
from steerboard.trackers.destinations.protocol import NotExported
from steerboard.trackers.exporting import due
from steerboard.trackers.exporting.channel import Channel
from steerboard.trackers.exporting.due import Claimed
from steerboard.trackers.exporting.points import next_batch
from steerboard.trackers.tables import RunExport
from steerboard_contracts.errors import SteerboardError

log = logging.getLogger(__name__)

_EXPORTERS = 3
_POLL_SECONDS = 2.0
# What a tracker has before others that wait.
_TURN_SECONDS = 30.0


@dataclass
class _Look:
    """One look at all of a tracker's runs: how many batches it has sent, and whether some of its runs are active."""

    batches: int
    goes_on: bool


class _Turn:
    """The work on one leased tracker. Its process starts with the first batch."""

    def __init__(self, sessions: sessionmaker[Session], settings: Settings, secrets: Secrets, claimed: Claimed) -> None:
        self._sessions = sessions
        self._settings = settings
        self._secrets = secrets
        self._claimed = claimed
        self._channel: Channel | None = None

    def look(self) -> _Look:
        """Raises `LeaseLost`, and `NotExported` after it was noted."""
        lease = self._claimed.lease
        with transaction(self._sessions) as session:
            tracker = due.LEASES.fenced(session, lease)
            due.LEASES.renew(session, lease, due.LEASE_SECONDS)
            due.add_new_runs(session, tracker)
            runs = [export.run_id for export in due.due_exports(session, tracker.id)]
        done = [self._export(run_id) for run_id in runs]
        return _Look(sum(sent for sent, _ in done), any(going for _, going in done))

    def close(self) -> None:
        """Close in order, so that all is confirmed. Raises `LeaseLost`, `NotExported`."""
        if self._channel is not None:
            confirmed = self._channel.close()
            with transaction(self._sessions) as session:
                due.note_confirmed(session, self._claimed.lease, confirmed)

    def stop(self) -> None:
        if self._channel is not None:
            self._channel.stop()

    def _export(self, run_id: uuid.UUID) -> tuple[int, bool]:
        """All that the run has now. Returns how many batches, and whether it is still active."""
        lease = self._claimed.lease
        for sent in range(1_000_000):
            with transaction(self._sessions) as session:
                due.LEASES.fenced(session, lease)
                due.LEASES.renew(session, lease, due.LEASE_SECONDS)
                export = session.get(RunExport, (lease.id, run_id))
                run = session.get(Run, run_id)
                if export is None or run is None:
                    return sent, False
                known = self._channel.sent if self._channel is not None else {}
                batch = next_batch(session, export, run, known.get(run_id, export.confirmed_step))
                ended_at = run.ended_at
            if batch is None:
                return sent, run.state not in ENDED
            try:
                channel = self._channel or self._open()
                written = channel.write(run_id, batch)
            except (NotExported, SteerboardError) as error:
                detail = error.detail if isinstance(error, SteerboardError) else str(error)
                with transaction(self._sessions) as session:
                    due.note_failed(session, lease, run_id, detail)
                raise NotExported(detail) from None
            with transaction(self._sessions) as session:
                due.note_written(session, lease, run_id, batch.last(), written)
                if batch.end is not None:
                    due.note_end(session, lease, run_id, ended_at)
            if batch.end is not None:
                return sent + 1, False
        raise AssertionError("a run has no end")

    def _open(self) -> Channel:
        sealed = self._claimed.secret_sealed
        self._channel = Channel(self._settings, self._claimed, self._secrets.open(sealed) if sealed else None)
        return self._channel


def export_next(
    sessions: sessionmaker[Session], settings: Settings, secrets: Secrets, stopping: threading.Event
) -> bool:
    """Take a turn at the tracker that is due. Returns whether there was one."""
    with transaction(sessions) as session:
        claimed = due.claim_next(session, settings.home)
    if claimed is None:
        return False
    turn = _Turn(sessions, settings, secrets, claimed)
    try:
        _take(turn, sessions, stopping)
    except LeaseLost:
        return True
    except NotExported as error:
        log.warning("export to %s of project %s: %s", claimed.kind, claimed.project, error)
    finally:
        turn.stop()
    try:
        with transaction(sessions) as session:
            due.release(session, claimed.lease)
    except LeaseLost:
        pass
    return True


def _take(turn: _Turn, sessions: sessionmaker[Session], stopping: threading.Event) -> None:
    until = time.monotonic() + _TURN_SECONDS
    while not stopping.is_set():
        look = turn.look()
        if not look.goes_on and not look.batches:
            break
        if time.monotonic() >= until:
            with transaction(sessions) as session:
                if due.others_wait(session):
                    break
        if not look.batches:
            stopping.wait(_POLL_SECONDS)
    if not stopping.is_set():
        turn.close()


def exporters(sessions: sessionmaker[Session], settings: Settings, secrets: Secrets) -> PollingThreads:
    """Threads that export. Trackers' libraries are in processes of their own."""
    return PollingThreads("trackers", _EXPORTERS, lambda stopping: export_next(sessions, settings, secrets, stopping))
