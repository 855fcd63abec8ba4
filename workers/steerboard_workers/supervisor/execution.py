"""One claimed run, from claim to ending: inputs out, stage process watched, outputs in."""

from __future__ import annotations

import errno
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.observability import logs, traces
from steerboard.platform import vllm
from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.runs import claims, endings, inputs, journal, outputs, settling
from steerboard.runs.claims import Claim
from steerboard.runs.endings import Failure
from steerboard.runs.errors import LeaseLost
from steerboard.runs.tables import Run
from steerboard_contracts.errors import NoSpaceLeft, SteerboardError
from steerboard_contracts.stage import Succeeded
from steerboard_workers.supervisor import evidence, gathering, judging, process
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.supervisor.journal import Journal
from steerboard_workers.supervisor.lease import LeaseKeeper
from steerboard_workers.supervisor.preparation import prepare
from steerboard_workers.supervisor.process import StageProcess
from steerboard_workers.supervisor.workspace import Workspace

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
_RETRY_SECONDS = 1.0
# Hashing a large model again may take a while in which the database hears nothing.
_REGISTRATION_PATIENCE = "10min"
_FULL_DISK = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


@dataclass
class Attempt:
    """What is known of an attempt so far."""

    run: Run
    workspace: Workspace
    device_seconds: float = 0.0
    succeeded: bool = False


class Supervisor:
    """Executes claimed runs one at a time. `stopping` is set when the worker should go away."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        store: ArtifactStore,
        settings: Settings,
        *,
        group: DeviceGroup,
        stopping: threading.Event,
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._settings = settings
        self._home = settings.home
        self._group = group
        self._stopping = stopping

    def execute(self, claim: Claim) -> None:
        """Work on a claimed run until it has ended, is queued again, or belongs to another attempt."""
        run_id = str(claim.run_id)
        about: dict[str, str | int] = {"steerboard.run_id": run_id, "steerboard.attempt": claim.attempt}
        with logs.bound(run_id=run_id, attempt=claim.attempt), traces.span("run", about) as span:
            self._execute(claim, span)

    def _execute(self, claim: Claim, span: traces.Span) -> None:
        workspace = Workspace(self._home, claim)
        lease = LeaseKeeper(
            self._sessions,
            claim,
            lease_seconds=self._settings.lease_seconds,
            heartbeat_seconds=self._settings.heartbeat_seconds,
        )
        with lease, workspace:
            try:
                with transaction(self._sessions) as session:
                    attempt = Attempt(claims.fenced(session, claim), workspace)
                span.update_name(f"run {attempt.run.kind}")
                span.set_attribute("steerboard.run", attempt.run.name)
                log.info("run %s, attempt %d: begins", attempt.run.name, claim.attempt)
                failure = self._guarded(attempt, lambda: self._work(claim, attempt, lease))
                if attempt.succeeded:
                    log.info("run %s, attempt %d: succeeded", attempt.run.name, claim.attempt)
                    workspace.discard()
                    return
                self._persist(lease, lambda: self._write_ending(claim, attempt, lease, failure))
                workspace.discard_attempt()
            except LeaseLost as error:
                # Nothing here is ours any more, not even the files to clean up.
                log.warning("%s", error)

    def _guarded(self, attempt: Attempt, work: Callable[[], Failure | None]) -> Failure | None:
        """Do `work`; every error but a lost lease becomes the attempt's failure."""
        try:
            return work()
        except LeaseLost:
            raise
        except SteerboardError as error:
            log.warning("run %s: %s", attempt.run.name, error, exc_info=True)
            return Failure.of(error)
        except OSError as error:
            log.warning("run %s: %s", attempt.run.name, error, exc_info=True)
            if error.errno in _FULL_DISK:
                return Failure.of(NoSpaceLeft("The worker's disk or a quota is full.", hint="Free some space on it."))
            return Failure("worker_error", f"The worker met an error of the system: {error}", retryable=True)
        except OperationalError as error:
            log.warning("run %s: %s", attempt.run.name, error)
            return Failure("database_unavailable", "The worker lost the database.", retryable=True)
        except Exception as error:
            log.exception("run %s", attempt.run.name)
            detail = f"The worker met {type(error).__name__}; its log has the traceback."
            return Failure("internal_error", detail, retryable=True)

    def _work(self, claim: Claim, attempt: Attempt, lease: LeaseKeeper) -> Failure | None:
        """Stage process, then outputs. None when the run has succeeded, or has to stop."""
        run, workspace = attempt.run, attempt.workspace
        # A predecessor on this machine whose guardian was killed with it must be gone before its checkpoints are read.
        process.kill_marked(f"{run.id}:")
        workspace.open()
        with transaction(self._sessions) as session:
            shards = settling.shards_of(session, run)
        if shards:
            result = gathering.gather(self._sessions, self._store, shards, workspace.directory)
            seconds = sum(shard.device_seconds for shard in shards)
            self._persist(lease, lambda: self._register(claim, attempt, result, seconds))
            return None
        # Before anything is fetched for a run that cannot be started here.
        by_vllm = run.config.get("engine") == "vllm" and not judging.asks_elsewhere(run)
        python = vllm.require_python(self._settings) if by_vllm else None
        if run.kind != judging.KIND:
            spec = prepare(
                self._sessions, self._store, self._settings, run, self._home, workspace.directory, workspace.holds
            )
            workspace.write_spec(spec)
        lease.check()
        if self._leaving(lease):
            return None
        kills_before = evidence.oom_kills()
        stage = self._start(claim, run, workspace, python)
        try:
            self._watch(claim, stage, lease)
        finally:
            seconds = stage.end()
            # What computes elsewhere is paid for in tokens.
            attempt.device_seconds = 0.0 if judging.asks_elsewhere(run) else seconds * self._group.count
        lease.check()
        done = isinstance(stage.result, Succeeded)
        if lease.cancelled.is_set() or (self._stopping.is_set() and not done):
            return None
        # A stage that was stopped after its last word has done its work: its outputs are in place before it says so.
        status = "exit 0" if done and self._stopping.is_set() else stage.status
        killed_for_memory = evidence.oom_kills() > kills_before
        failure = evidence.failure_of(stage.result, status, stage.tail, killed_for_memory)
        if failure is None:
            assert isinstance(stage.result, Succeeded)
            result = stage.result
            outputs.upload(self._store, result.outputs, workspace.directory)
            self._persist(lease, lambda: self._register(claim, attempt, result, attempt.device_seconds))
        return failure

    def _start(self, claim: Claim, run: Run, workspace: Workspace, vllm_python: Path | None) -> StageProcess:
        if judging.asks_elsewhere(run):
            return StageProcess(
                workspace.directory,
                run_id=str(run.id),
                attempt=claim.attempt,
                threads=self._settings.stage_threads,
                memory=0,
                devices=[],
                command=judging.command(claim, run),
                variables=judging.variables(self._settings),
            )
        return StageProcess(
            workspace.directory,
            run_id=str(run.id),
            attempt=claim.attempt,
            threads=self._settings.stage_threads,
            memory=(self._settings.stage_memory_mb or 0) << 20,
            devices=self._group.devices,
            launcher=self._group.launcher(run, claim.attempt),
            command=process.stage_command(workspace.directory, python=vllm_python) if vllm_python else None,
            variables=vllm.variables(vllm_python, self._home) if vllm_python else None,
        )

    def _leaving(self, lease: LeaseKeeper) -> bool:
        return lease.cancelled.is_set() or self._stopping.is_set()

    def _watch(self, claim: Claim, stage: StageProcess, lease: LeaseKeeper) -> None:
        """Pass on what the stage says until it has ended, or end it when it must not go on."""
        notes = Journal(lambda batch: self._write(claim, batch))
        lease.on_renewed = stage.extend
        lease.on_end = stage.kill
        stage.extend(lease.deadline)
        if lease.lost.is_set() or lease.cancelled.is_set():
            stage.kill()
        ended = False
        while True:
            if self._stopping.is_set():
                stage.kill()
            try:
                notes.add(stage.events.get(timeout=_POLL_SECONDS))
            except queue.Empty:
                # Once more through the queue after the end: its last events may still be on their way.
                if ended or (stage.killed and not stage.ended(process.KILL_SECONDS)):
                    break
                ended = stage.ended(0)
            notes.flush_when_due()
        self._persist(lease, notes.flush_or_raise)

    def _write(self, claim: Claim, batch: journal.Batch) -> None:
        with transaction(self._sessions) as session:
            journal.write(session, claim, batch)

    def _persist(self, lease: LeaseKeeper, write: Callable[[], None]) -> None:
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

    def _register(self, claim: Claim, attempt: Attempt, result: Succeeded, device_seconds: float) -> None:
        """Outputs, accounting and state in one transaction."""
        with transaction(self._sessions) as session:
            session.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{_REGISTRATION_PATIENCE}'"))
            run = claims.fenced(session, claim)
            if run.shard is None:
                things = inputs.resolve(session, run)
                outputs.register(session, self._store, run, things, result.outputs, attempt.workspace.directory)
            else:
                gathering.keep_shard(session, self._store, run, result.outputs, attempt.workspace.directory)
            endings.succeed(session, run, result.summary, device_seconds)
        attempt.succeeded = True

    def _write_ending(self, claim: Claim, attempt: Attempt, lease: LeaseKeeper, failure: Failure | None) -> None:
        """Of an attempt that did not succeed."""
        with transaction(self._sessions) as session:
            run = claims.fenced(session, claim)
            seconds = attempt.device_seconds
            if lease.cancelled.is_set() or run.cancel_requested_at is not None:
                endings.cancel(session, run, seconds)
            elif failure is not None:
                endings.fail(session, run, failure, seconds, self._settings.retry_seconds)
            else:
                endings.stop(session, run, "its worker was stopped; waits for another", seconds)
            log.info("run %s, attempt %d: %s, %s", run.name, claim.attempt, run.state, run.reason)
