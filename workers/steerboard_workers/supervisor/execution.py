"""One claimed run, from claim to ending: inputs out, stage process watched, outputs in."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.hub_tokens import hub_token_of
from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.telemetry import logs, traces
from steerboard.runs.results import outputs
from steerboard.runs.state import claims, dependencies, oversight
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run, RunAttempt
from steerboard_contracts.stage.events import Paused, Succeeded
from steerboard_contracts.stage.spec import StageSpec
from steerboard_workers.cpu_threads import settle_threads
from steerboard_workers.gpus import GpuWatch
from steerboard_workers.supervisor import (
    endpoint_runs,
    failure_diagnosis,
    log_prob_sharing,
    merge_shards,
    process,
    reward_judging,
)
from steerboard_workers.supervisor.attempts.attempt import Attempt
from steerboard_workers.supervisor.attempts.failures import guarded
from steerboard_workers.supervisor.attempts.persistence import Persistence
from steerboard_workers.supervisor.attempts.starting import ASKING_THE_HUB, StageStarter
from steerboard_workers.supervisor.attempts.watching import StageWatcher
from steerboard_workers.supervisor.checkpoints.fetch import fetch_newest
from steerboard_workers.supervisor.checkpoints.uploads import CheckpointUploads
from steerboard_workers.supervisor.device_group import DeviceGroup, role_variables
from steerboard_workers.supervisor.lease import LeaseKeeper
from steerboard_workers.supervisor.preparation import prepare
from steerboard_workers.supervisor.warm_start import StageParent
from steerboard_workers.supervisor.workspace import Workspace

log = logging.getLogger(__name__)

# What a checkpoint that is on its way when its attempt ends may still take: the machine may be about to go.
_PARTING_SECONDS = 15.0
_PAUSE_SECONDS = 600.0


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
        self._persistence = Persistence(sessions, store, retry_seconds=settings.retry_seconds, stopping=stopping)
        self._starter = StageStarter(settings, group, parent)
        self._watcher = StageWatcher(sessions, settings, self._persistence, stopping, GpuWatch(group.devices))

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
                    run = claims.fenced(session, claim)
                    threads = settle_threads(session, self._settings, run, self._group.processes(run.kind))
                    worker, elapsed = _so_far(session, run)
                    attempt = Attempt(claim, run, workspace, lease, threads, worker, time.monotonic() - elapsed)
                if attempt.run.kind == "train" and self._store.outlives(self._home):
                    attempt.uploads = stack.enter_context(
                        CheckpointUploads(self._sessions, self._store, claim, workspace)
                    )
                span.update_name(f"run {attempt.run.kind}")
                span.set_attribute("steerboard.run", attempt.run.name)
                log.info("run %s, attempt %d: begins, CPU threads: %d", attempt.run.name, claim.attempt, threads)
                failure = guarded(attempt, lambda: self._work(attempt))
                if attempt.succeeded:
                    log.info("run %s, attempt %d: succeeded", attempt.run.name, claim.attempt)
                    workspace.discard()
                    self._persistence.clear_checkpoints(attempt)
                    return
                if attempt.uploads is not None and not (lease.lost.is_set() or lease.cancelled.is_set()):
                    # A paused run resumes wherever there is room, perhaps not here.
                    attempt.uploads.settle(_PARTING_SECONDS if attempt.paused is None else _PAUSE_SECONDS)
                self._persistence.persist(lease, lambda: self._persistence.end(attempt, failure))
                workspace.discard_attempt()
            except LeaseLost as error:
                # Nothing here is ours any more, not even the files to clean up.
                log.warning("%s", error)

    def _work(self, attempt: Attempt) -> Failure | None:
        """Stage process, then outputs. None when the run has succeeded, or has to stop."""
        run, workspace, lease = attempt.run, attempt.workspace, attempt.lease
        # A predecessor on this machine whose guardian was killed with it must be gone before its checkpoints are read.
        process.kill_marked(f"{run.id}:")
        workspace.open()
        with transaction(self._sessions) as session:
            shards = dependencies.shards_of(session, run)
        if shards:
            result = merge_shards.gather(self._sessions, self._store, shards, workspace.directory)
            self._register(attempt, result, sum(shard.device_seconds for shard in shards))
            return None
        # Before anything is fetched for a run that cannot be started here.
        python = self._starter.python_of(run)
        spec = None if endpoint_runs.judges(run) else self._prepared(attempt)
        shared = [Path(folder) for folder in spec.caches.values()] if spec is not None else []
        if attempt.uploads is not None:
            fetch_newest(self._sessions, self._store, attempt.claim, workspace.checkpoints)
            log_prob_sharing.fetch(self._store, shared)
        lease.check()
        if lease.cancelled.is_set() or self._stopping.is_set():
            return None
        kills_before = failure_diagnosis.oom_kills()
        variables = (role_variables(self._settings, spec) if spec is not None else {}) | self._hub_token(run)
        stage = self._starter.start(attempt, python, variables)
        why: Failure | None = None
        try:
            why = self._watcher.watch(attempt, stage)
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
            self._take_in(attempt, stage.result, shared)
        return failure

    def _prepared(self, attempt: Attempt) -> StageSpec:
        """What the stage reads, in the attempt's folder."""
        run, workspace = attempt.run, attempt.workspace
        spec = prepare(
            self._sessions,
            self._store,
            self._settings,
            run,
            self._home,
            workspace.directory,
            workspace.holds,
            threads=attempt.threads,
        )
        spec = reward_judging.with_judges(
            self._settings, attempt.claim, run, self._group.described(spec), workspace.holds
        )
        workspace.write_spec(spec)
        workspace.write_control(oversight.control_of(run))
        return spec

    def _hub_token(self, run: Run) -> dict[str, str]:
        """The project's own, before that of this worker's environment."""
        if run.kind not in ASKING_THE_HUB:
            return {}
        with transaction(self._sessions) as session:
            token = hub_token_of(session, Secrets(self._settings), run.project_id)
        return {"HF_TOKEN": token} if token else {}

    def _take_in(self, attempt: Attempt, result: Succeeded, shared: list[Path]) -> None:
        """`shared`: folders of log-probs that other runs read, too."""
        if attempt.uploads is not None:
            attempt.uploads.close()
            log_prob_sharing.publish(self._store, shared, str(attempt.run.id))
        outputs.upload(self._store, result.outputs, attempt.workspace.directory)
        self._register(attempt, result, attempt.device_seconds)

    def _register(self, attempt: Attempt, result: Succeeded, seconds: float) -> None:
        self._persistence.persist(attempt.lease, lambda: self._persistence.register(attempt, result, seconds))


def _so_far(session: Session, run: Run) -> tuple[str, float]:
    """The worker of a run's attempt, and the seconds since its first one began, by the database's clock."""
    worker = session.get_one(RunAttempt, (run.id, run.attempt)).worker
    elapsed = func.extract("epoch", func.clock_timestamp() - Run.started_at)
    return worker, float(session.scalar(select(elapsed).where(Run.id == run.id)) or 0.0)
