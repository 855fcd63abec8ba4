"""How an attempt went, into the database: outputs, accounting and state, behind the fence."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import patiently, transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.disk import database_is_full, no_space_for_rows
from steerboard.runs import inputs
from steerboard.runs.checkpoints import stored as stored_checkpoints
from steerboard.runs.results import outputs
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.tables import Run
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage.events import Succeeded
from steerboard_workers.supervisor import merge_shards
from steerboard_workers.supervisor.attempts.attempt import Attempt
from steerboard_workers.supervisor.lease import LeaseKeeper

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
# Hashing a large model again may take a while in which the database hears nothing, and many rows one in which it is
# not heard.
_REGISTRATION_SECONDS = 600


class Persistence:
    def __init__(
        self,
        sessions: sessionmaker[Session],
        store: ArtifactStore,
        *,
        retry_seconds: float,
        stopping: threading.Event,
    ) -> None:
        """`retry_seconds`: after how long a failed run is tried again."""
        self._sessions = sessions
        self._store = store
        self._retry_seconds = retry_seconds
        self._stopping = stopping

    def persist(self, lease: LeaseKeeper, write: Callable[[], None]) -> None:
        """Do a transaction that must not get lost because the database is away for a while.

        Doing it again is safe: behind the fence, an ending whose commit went unheard makes the next try `LeaseLost`.
        """
        while True:
            try:
                write()
                return
            except OperationalError as error:
                log.warning("the database does not answer, trying again: %s", error)
                if self._stopping.wait(_RETRY_SECONDS):
                    raise
                lease.check()

    def register(self, attempt: Attempt, result: Succeeded, device_seconds: float) -> None:
        """Outputs, accounting and state in one transaction. Raises `NoSpaceLeft` when the database has none for them:
        to try again immediately would only keep the disk full."""
        try:
            self._register_once(attempt, result, device_seconds)
        except OperationalError as error:
            if database_is_full(error):
                raise no_space_for_rows() from error
            raise
        attempt.succeeded = True

    def end(self, attempt: Attempt, failure: Failure | None) -> None:
        """Ends an attempt that did not succeed."""
        with transaction(self._sessions) as session:
            run = claims.fenced(session, attempt.claim)
            seconds = attempt.device_seconds
            if attempt.lease.cancelled.is_set() or run.cancel_requested_at is not None:
                attempt_outcomes.cancel(session, run, seconds)
            elif failure is not None:
                attempt_outcomes.fail(session, run, failure, seconds, self._retry_seconds)
            elif attempt.paused is not None:
                attempt_outcomes.pause(session, run, attempt.paused, seconds)
            else:
                attempt_outcomes.stop(session, run, "its worker was stopped; waiting for another", seconds)
            log.info("run %s, attempt %d: %s, %s", run.name, attempt.claim.attempt, run.state, run.reason)

    def clear_checkpoints(self, attempt: Attempt) -> None:
        """Clears the checkpoints of a run that has succeeded. What stays here because the store is away, `steerboard
        gc` removes."""
        if attempt.uploads is None:
            return
        try:
            stored_checkpoints.clear(self._store, attempt.claim)
        except (SteerboardError, OSError) as error:
            log.warning("the stored checkpoints of run %s stay for now: %s", attempt.run.name, error)

    def _register_once(self, attempt: Attempt, result: Succeeded, device_seconds: float) -> None:
        with transaction(self._sessions) as session:
            session.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{_REGISTRATION_SECONDS}s'"))
            run = claims.fenced(session, attempt.claim)
            with patiently(session, _REGISTRATION_SECONDS):
                self._register_outputs(session, run, attempt, result)
            stored_checkpoints.forget(session, attempt.claim)
            attempt_outcomes.succeed(session, run, result.summary, device_seconds)

    def _register_outputs(self, session: Session, run: Run, attempt: Attempt, result: Succeeded) -> None:
        if run.shard is None:
            things = inputs.resolve(session, run)
            outputs.register(session, self._store, run, things, result.outputs, attempt.workspace.directory)
        else:
            merge_shards.keep_shard(session, self._store, run, result.outputs, attempt.workspace.directory)
