"""One claimed run, from claim to ending: inputs out, stage process watched, outputs in."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import patiently, transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.processes import lm_eval, vllm
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.disk import database_is_full, disk_of, no_space_for_rows
from steerboard.platform.telemetry import logs, traces
from steerboard.runs import inputs, progress_log
from steerboard.runs.checkpoints import stored as stored_checkpoints
from steerboard.runs.results import outputs
from steerboard.runs.state import attempt_outcomes, claims, dependencies, oversight
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run
from steerboard_contracts.errors import NoSpaceLeft, SteerboardError
from steerboard_contracts.files.disk import FULL, Disk
from steerboard_contracts.run_kinds import any_kind_of, trains
from steerboard_contracts.stage.events import Checkpointed, Paused, Succeeded
from steerboard_workers.memory import stage_memory
from steerboard_workers.supervisor import endpoint_runs, failure_diagnosis, log_prob_sharing, merge_shards, process
from steerboard_workers.supervisor.checkpoint_fetch import fetch_newest
from steerboard_workers.supervisor.checkpoint_uploads import CheckpointUploads
from steerboard_workers.supervisor.device_group import DeviceGroup, role_variables
from steerboard_workers.supervisor.lease import LeaseKeeper
from steerboard_workers.supervisor.preparation import prepare
from steerboard_workers.supervisor.process import StageProcess
from steerboard_workers.supervisor.progress_log import Journal
from steerboard_workers.supervisor.warm_start import StageParent
from steerboard_workers.supervisor.workspace import Workspace

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
_RETRY_SECONDS = 1.0
# Hashing a large model again may take a while in which the database hears nothing, and many rows one in which it is
# not heard.
_REGISTRATION_SECONDS = 600
# What a checkpoint that is on its way when its attempt ends may still take: the machine may be about to go.
_PARTING_SECONDS = 15.0
_PAUSE_SECONDS = 600.0
_DISK_SECONDS = 1.0


@dataclass
class Attempt:
    """What is known of an attempt so far."""

    run: Run
    workspace: Workspace
    device_seconds: float = 0.0
    succeeded: bool = False
    paused: Paused | None = None
    uploads: CheckpointUploads | None = None


class Supervisor:
    """Executes claimed runs one at a time. `renewals`: sessions for the lease, by default the same. `stopping` is set
    when the worker should go away. `parent` forks stages, where there is one."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        store: ArtifactStore,
        settings: Settings,
        *,
        renewals: sessionmaker[Session] | None = None,
        group: DeviceGroup,
        stopping: threading.Event,
        parent: StageParent | None = None,
    ) -> None:
        self._sessions = sessions
        self._renewals = renewals or sessions
        self._store = store
        self._settings = settings
        self._home = settings.home
        self._group = group
        self._stopping = stopping
        self._parent = parent

    def execute(self, claim: Claim) -> None:
        """Work on a claimed run until it has ended, is queued again, or belongs to another attempt."""
        run_id = str(claim.run_id)
        about: dict[str, str | int] = {"steerboard.run_id": run_id, "steerboard.attempt": claim.attempt}
        with logs.bound(run_id=run_id, attempt=claim.attempt), traces.span("run", about) as span:
            self._execute(claim, span)

    def _execute(self, claim: Claim, span: traces.Span) -> None:
        workspace = Workspace(self._home, claim)
        lease = LeaseKeeper(
            self._renewals,
            claim,
            lease_seconds=self._settings.lease_seconds,
            heartbeat_seconds=self._settings.heartbeat_seconds,
        )
        with lease, workspace, ExitStack() as stack:
            try:
                with transaction(self._sessions) as session:
                    attempt = Attempt(claims.fenced(session, claim), workspace)
                if trains(attempt.run.kind) and self._store.outlives(self._home):
                    attempt.uploads = stack.enter_context(
                        CheckpointUploads(self._sessions, self._store, claim, workspace)
                    )
                span.update_name(f"run {attempt.run.kind}")
                span.set_attribute("steerboard.run", attempt.run.name)
                log.info("run %s, attempt %d: begins", attempt.run.name, claim.attempt)
                failure = self._guarded(attempt, lambda: self._work(claim, attempt, lease))
                if attempt.succeeded:
                    log.info("run %s, attempt %d: succeeded", attempt.run.name, claim.attempt)
                    workspace.discard()
                    self._clear_checkpoints(claim, attempt)
                    return
                if attempt.uploads is not None and not (lease.lost.is_set() or lease.cancelled.is_set()):
                    # A paused run goes on wherever there is room, perhaps not here.
                    attempt.uploads.settle(_PARTING_SECONDS if attempt.paused is None else _PAUSE_SECONDS)
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
            if error.errno in FULL:
                return Failure.of(_disk_of(attempt.workspace).full())
            return Failure("worker_error", f"The worker met an error of the system: {error}", retryable=True)
        except OperationalError as error:
            log.warning("run %s: %s", attempt.run.name, error)
            if database_is_full(error):
                return Failure.of(no_space_for_rows())
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
            shards = dependencies.shards_of(session, run)
        if shards:
            result = merge_shards.gather(self._sessions, self._store, shards, workspace.directory)
            seconds = sum(shard.device_seconds for shard in shards)
            self._persist(lease, lambda: self._register(claim, attempt, result, seconds))
            return None
        # Before anything is fetched for a run that cannot be started here.
        # Where vLLM only samples for a training, the stage itself runs here.
        by_vllm = run.config.get("engine") == "vllm" and not trains(run.kind) and not endpoint_runs.asks_elsewhere(run)
        python = vllm.require_python(self._settings) if by_vllm else None
        if _by_harness(run):
            python = lm_eval.require_python(self._settings)
        shared: list[Path] = []
        of_roles: dict[str, str] = {}
        if not endpoint_runs.judges(run):
            spec = prepare(
                self._sessions, self._store, self._settings, run, self._home, workspace.directory, workspace.holds
            )
            spec = self._group.described(spec)
            of_roles = role_variables(self._settings, spec)
            workspace.write_spec(spec)
            workspace.write_control(oversight.control_of(run))
            shared = [Path(folder) for folder in spec.caches.values()]
        if attempt.uploads is not None:
            fetch_newest(self._sessions, self._store, claim, workspace.checkpoints)
            log_prob_sharing.fetch(self._store, shared)
        lease.check()
        if self._leaving(lease):
            return None
        kills_before = failure_diagnosis.oom_kills()
        stage = self._start(claim, run, workspace, python, of_roles)
        why: Failure | None = None
        try:
            why = self._watch(claim, attempt, stage, lease)
        finally:
            seconds = stage.end()
            # What computes elsewhere is paid for in tokens.
            attempt.device_seconds = 0.0 if endpoint_runs.asks_elsewhere(run) else seconds * self._group.count
        lease.check()
        done = isinstance(stage.result, Succeeded | Paused)
        if lease.cancelled.is_set() or (self._stopping.is_set() and not done):
            return None
        if why is not None:
            return why
        # A stage that was stopped after its last word has done its work: its outputs are in place before it reports it.
        status = "exit 0" if done and self._stopping.is_set() else stage.status
        killed_for_memory = failure_diagnosis.oom_kills() > kills_before
        doing = failure_diagnosis.doing_with_model(workspace.directory)
        failure = failure_diagnosis.failure_of(stage.result, status, stage.tail, killed_for_memory, doing)
        if failure is None and isinstance(stage.result, Paused):
            attempt.paused = stage.result
        elif failure is None:
            assert isinstance(stage.result, Succeeded)
            result = stage.result
            if attempt.uploads is not None:
                attempt.uploads.close()
                log_prob_sharing.publish(self._store, shared, str(run.id))
            outputs.upload(self._store, result.outputs, workspace.directory)
            self._persist(lease, lambda: self._register(claim, attempt, result, attempt.device_seconds))
        return failure

    def _start(
        self, claim: Claim, run: Run, workspace: Workspace, python: Path | None, variables: dict[str, str]
    ) -> StageProcess:
        """`variables`: further ones of a stage's environment."""
        if endpoint_runs.asks_elsewhere(run):
            return StageProcess(
                workspace.directory,
                run_id=str(run.id),
                attempt=claim.attempt,
                threads=self._settings.stage_threads,
                # Below it there may be a harness, which loads what people bring.
                memory=stage_memory(self._settings) if _by_harness(run) else 0,
                devices=[],
                command=endpoint_runs.command(claim, run),
                variables=self._hub_variables(run) | endpoint_runs.variables(self._settings, python),
            )
        return StageProcess(
            workspace.directory,
            run_id=str(run.id),
            attempt=claim.attempt,
            threads=self._settings.stage_threads,
            memory=stage_memory(self._settings),
            devices=self._group.devices,
            launcher=self._group.launcher(run, claim.attempt),
            command=process.stage_command(workspace.directory, python=python) if python else None,
            variables=self._variables(run, python) | variables,
            parent=self._parent,
        )

    def _variables(self, run: Run, python: Path | None) -> dict[str, str]:
        """What a stage gets besides the worker's own environment. `python`: another one than this."""
        hub = self._hub_variables(run)
        if _by_harness(run):
            return hub | lm_eval.variables(self._home)
        return hub | (vllm.variables(python, self._home) if python else {})

    def _hub_variables(self, run: Run) -> dict[str, str]:
        kind = any_kind_of(run.kind, run.method)
        return process.hub_variables() if kind is not None and kind.reads_hub else {}

    def _leaving(self, lease: LeaseKeeper) -> bool:
        return lease.cancelled.is_set() or self._stopping.is_set()

    def _watch(self, claim: Claim, attempt: Attempt, stage: StageProcess, lease: LeaseKeeper) -> Failure | None:
        """Pass on the stage's events until it has ended, or end it when it must not go on. Returns why, where that is
        a failure: its silence, or a disk that has room for nothing but the database."""
        why: Failure | None = None
        heard = looked = time.monotonic()
        disk = _disk_of(attempt.workspace)
        notes = Journal(lambda batch: self._write(claim, batch))
        lease.on_renewed = stage.extend
        lease.on_end = stage.kill
        lease.on_control = attempt.workspace.write_control
        stage.extend(lease.deadline)
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
            notes.flush_when_due()
        self._persist(lease, notes.flush_or_raise)
        return why

    def _stalled(self, attempt: Attempt, silent: float) -> Failure | None:
        """What to say of a stage that has been silent for so many seconds, if that is too long."""
        # What asks elsewhere may have to wait for long, and runs nobody's model.
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
        """Outputs, accounting and state in one transaction. Raises `NoSpaceLeft` when the database has none for them:
        to try again at once would only keep the disk full."""
        try:
            self._register_once(claim, attempt, result, device_seconds)
        except OperationalError as error:
            if database_is_full(error):
                raise no_space_for_rows() from error
            raise
        attempt.succeeded = True

    def _register_once(self, claim: Claim, attempt: Attempt, result: Succeeded, device_seconds: float) -> None:
        with transaction(self._sessions) as session:
            session.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{_REGISTRATION_SECONDS}s'"))
            run = claims.fenced(session, claim)
            with patiently(session, _REGISTRATION_SECONDS):
                self._register_outputs(session, run, attempt, result)
            stored_checkpoints.forget(session, claim)
            attempt_outcomes.succeed(session, run, result.summary, device_seconds)

    def _register_outputs(self, session: Session, run: Run, attempt: Attempt, result: Succeeded) -> None:
        if run.shard is None:
            things = inputs.resolve(session, run)
            outputs.register(session, self._store, run, things, result.outputs, attempt.workspace.directory)
        else:
            merge_shards.keep_shard(session, self._store, run, result.outputs, attempt.workspace.directory)

    def _clear_checkpoints(self, claim: Claim, attempt: Attempt) -> None:
        """Of a run that has succeeded. What stays here because the store is away, `steerboard gc` removes."""
        if attempt.uploads is None:
            return
        try:
            stored_checkpoints.clear(self._store, claim)
        except (SteerboardError, OSError) as error:
            log.warning("the stored checkpoints of run %s stay for now: %s", attempt.run.name, error)

    def _write_ending(self, claim: Claim, attempt: Attempt, lease: LeaseKeeper, failure: Failure | None) -> None:
        """Of an attempt that did not succeed."""
        with transaction(self._sessions) as session:
            run = claims.fenced(session, claim)
            seconds = attempt.device_seconds
            if lease.cancelled.is_set() or run.cancel_requested_at is not None:
                attempt_outcomes.cancel(session, run, seconds)
            elif failure is not None:
                attempt_outcomes.fail(session, run, failure, seconds, self._settings.retry_seconds)
            elif attempt.paused is not None:
                attempt_outcomes.pause(session, run, attempt.paused, seconds)
            else:
                attempt_outcomes.stop(session, run, "its worker was stopped; waits for another", seconds)
            log.info("run %s, attempt %d: %s, %s", run.name, claim.attempt, run.state, run.reason)


def _disk_of(workspace: Workspace) -> Disk:
    return disk_of(workspace.directory, "the run's files")


def _by_harness(run: Run) -> bool:
    kind = any_kind_of(run.kind, run.method)
    return kind is not None and kind.by_harness
