"""A stage process at work: its events are passed on, and it ends when it must not continue."""

from __future__ import annotations

import queue
import threading
import time

from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.runs import progress_log
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard_contracts.errors import NoSpaceLeft
from steerboard_contracts.stage.events import Checkpointed
from steerboard_workers.gpus import GpuWatch
from steerboard_workers.supervisor import endpoint_runs, failure_diagnosis, process
from steerboard_workers.supervisor.attempts.attempt import Attempt
from steerboard_workers.supervisor.attempts.persistence import Persistence
from steerboard_workers.supervisor.device_samples import DeviceSamples, ProcessTree
from steerboard_workers.supervisor.process import StageProcess
from steerboard_workers.supervisor.progress_log import Journal

_POLL_SECONDS = 0.1
_DISK_SECONDS = 1.0


class StageWatcher:
    def __init__(
        self,
        sessions: sessionmaker[Session],
        settings: Settings,
        persistence: Persistence,
        stopping: threading.Event,
        gpus: GpuWatch,
    ) -> None:
        self._sessions = sessions
        self._settings = settings
        self._persistence = persistence
        self._stopping = stopping
        self._gpus = gpus

    def watch(self, attempt: Attempt, stage: StageProcess) -> Failure | None:
        """Pass on the stage's events until it has ended, or end it when it must not continue. Returns why, where that
        is a failure: its silence, or a disk that has room for nothing but the database."""
        why: Failure | None = None
        heard = looked = time.monotonic()
        lease, disk = attempt.lease, attempt.disk
        notes = Journal(lambda batch: self._write(attempt.claim, batch))
        lease.on_renewed = stage.extend
        lease.on_end = stage.kill
        lease.on_control = attempt.workspace.write_control
        stage.extend(lease.deadline)
        samples = self._samples(attempt, stage)
        if lease.lost.is_set() or lease.cancelled.is_set():
            stage.kill()
        ended = False
        while True:
            if self._stopping.is_set():
                stage.kill()
            try:
                event = stage.events.get(timeout=_POLL_SECONDS)
                heard = time.monotonic()
                notes.add(event)
                if isinstance(event, Checkpointed) and attempt.uploads is not None:
                    attempt.uploads.offer(event.step)
            except queue.Empty:
                if not stage.killed:
                    why = self._stalled(attempt, time.monotonic() - heard)
                    if why is not None:
                        stage.kill()
                # Once more through the queue after the end: its last events may still be on their way.
                if ended or (stage.killed and not stage.ended(process.KILL_SECONDS)):
                    break
                ended = stage.ended(0)
            if not stage.killed and time.monotonic() - looked > _DISK_SECONDS:
                looked = time.monotonic()
                try:
                    disk.need(0)
                except NoSpaceLeft as full:
                    why = Failure.of(full)
                    stage.kill()
            if samples is not None and not ended and (point := samples.take()) is not None:
                notes.add(point)
            notes.flush_when_due()
        self._persistence.persist(lease, notes.flush_or_raise)
        return why

    def _samples(self, attempt: Attempt, stage: StageProcess) -> DeviceSamples | None:
        """Returns None for a run that works elsewhere."""
        if endpoint_runs.asks_elsewhere(attempt.run):
            return None
        elapsed = time.monotonic() - attempt.began
        return DeviceSamples(attempt.worker, self._gpus, ProcessTree(stage.pid), elapsed)

    def _stalled(self, attempt: Attempt, silent: float) -> Failure | None:
        """What to say of a stage that has been silent for so many seconds, if that is too long."""
        # What asks elsewhere may have to wait for long, and runs no one's model.
        if endpoint_runs.asks_elsewhere(attempt.run):
            return None
        longest = self._settings.stage_stall_seconds
        shorter = min(longest, self._settings.model_stall_seconds)
        if silent <= shorter:
            return None
        doing = failure_diagnosis.doing_with_model(attempt.workspace.directory)
        limit = longest if doing is None else shorter
        return failure_diagnosis.stalled(limit, doing) if silent > limit else None

    def _write(self, claim: Claim, batch: progress_log.Batch) -> None:
        with transaction(self._sessions) as session:
            progress_log.write(session, claim, batch)
