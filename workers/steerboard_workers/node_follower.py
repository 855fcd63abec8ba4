"""A further node of a worker: it runs its part of whatever training run the first node has in hand.

It claims nothing and writes no outputs. It shares with the first node the database, the artifact store and the
rendezvous, and no folder: inputs it fetches itself, and checkpoints reach it through the first node's processes.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from pathlib import Path

from sqlalchemy import String, cast, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs import progress_log
from steerboard.runs.state.claims import LEASES, Claim
from steerboard.runs.tables import Run, RunAttempt, WorkerRow
from steerboard_contracts import guardian
from steerboard_contracts.stage.events import Failed
from steerboard_contracts.stage.spec import StageSpec
from steerboard_workers.cpu_threads import usable_cores
from steerboard_workers.memory import stage_memory
from steerboard_workers.supervisor import failure_diagnosis
from steerboard_workers.supervisor.device_group import DeviceGroup, role_variables
from steerboard_workers.supervisor.lease import STAGE_SHARE
from steerboard_workers.supervisor.preparation import prepare
from steerboard_workers.supervisor.process import StageProcess, kill_marked
from steerboard_workers.supervisor.workspace import Workspace

log = logging.getLogger("steerboard.worker")


class Follower:
    """Node `group.node` of the worker that leads at `group.rendezvous`. `stopping` ends it."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        renewals: sessionmaker[Session],
        store: ArtifactStore,
        settings: Settings,
        group: DeviceGroup,
        stopping: threading.Event,
    ) -> None:
        self._sessions = sessions
        self._renewals = renewals
        self._store = store
        self._settings = settings
        self._group = group
        self._stopping = stopping
        # A folder of this node's own, even where a machine is several nodes.
        self.home = settings.home / "nodes" / str(group.node)
        self._look_seconds = min(settings.heartbeat_seconds, settings.lease_seconds / 4)

    def follow(self) -> None:
        """Follows the first node until `stopping`. An attempt is taken part in once."""
        before: Claim | None = None
        while not self._stopping.wait(0.2 if before is None else self._look_seconds):
            try:
                claim = self._claim_of_leader()
                if claim is not None and claim != before:
                    self._take_part(claim)
                before = claim
            except (SQLAlchemyError, LeaseLost) as error:
                log.warning("node %d: %s", self._group.node, error)
            except Exception:
                log.exception("node %d could not take part", self._group.node)
                self._stopping.wait(self._look_seconds)

    def _claim_of_leader(self) -> Claim | None:
        """The training run that the first node has in hand, once it has settled the CPU threads; none once its lease
        has expired."""
        statement = (
            select(Run.id, Run.attempt, Run.lease_owner)
            .join(WorkerRow, cast(WorkerRow.id, String) == Run.lease_owner)
            .join(RunAttempt, (RunAttempt.run_id == Run.id) & (RunAttempt.attempt == Run.attempt))
            .where(RunAttempt.threads.is_not(None))
            .where(LEASES.held(), Run.kind == "train")
            .where(WorkerRow.devices["rendezvous"].astext == self._group.rendezvous)
        )
        with transaction(self._renewals) as session:
            # Between a first node that died and one that took its place, the one that lives renews its lease.
            leader = session.execute(statement.order_by(Run.lease_expires_at.desc()).limit(1)).first()
        return Claim(leader.id, leader.attempt, leader.lease_owner) if leader else None

    def _take_part(self, claim: Claim) -> None:
        with transaction(self._sessions) as session:
            run = session.get_one(Run, claim.run_id)
            threads = session.get_one(RunAttempt, (claim.run_id, claim.attempt)).threads
        threads = min(threads or 1, usable_cores())
        kill_marked(f"{self._mark(claim)}:")
        with Workspace(self.home, claim) as workspace:
            workspace.open()
            spec = prepare(
                self._sessions,
                self._store,
                self._settings,
                run,
                self.home,
                workspace.directory,
                workspace.holds,
                threads=threads,
            )
            spec = self._group.described(spec)
            workspace.write_spec(spec)
            log.info("run %s, attempt %d: node %d takes part", run.name, claim.attempt, self._group.node)
            kills_before = failure_diagnosis.oom_kills()
            stage = self._start(claim, run, spec, workspace.directory, threads)
            try:
                ended = self._watch(claim, stage)
            finally:
                stage.end()
        workspace.discard()
        if ended and (isinstance(stage.result, Failed) or stage.status != "exit 0"):
            self._report(claim, stage, failure_diagnosis.oom_kills() > kills_before)

    def _report(self, claim: Claim, stage: StageProcess, killed_for_memory: bool) -> None:
        """Why this node's part ended, for the run's log: the first node sees only that someone has gone."""
        failure = failure_diagnosis.failure_of(stage.result, stage.status, stage.tail, killed_for_memory)
        assert failure is not None
        line = f"node {self._group.node}: {failure.code}: {failure.detail}"
        with transaction(self._sessions) as session:
            progress_log.write(session, claim, progress_log.Batch(logs=[("error", line)]))

    def _start(self, claim: Claim, run: Run, spec: StageSpec, directory: Path, threads: int) -> StageProcess:
        roles_only = [sys.executable, "-m", "steerboard_workers.stages.roles.node", str(directory)]
        return StageProcess(
            directory,
            run_id=self._mark(claim),
            attempt=claim.attempt,
            threads=threads,
            memory=stage_memory(self._settings),
            devices=self._group.devices,
            launcher=self._group.launcher(run, claim.attempt),
            command=None if self._group.trains(run) else roles_only,
            variables=role_variables(self._settings, spec),
        )

    def _mark(self, claim: Claim) -> str:
        """Another than the first node's: on one machine neither may end the other's processes."""
        return f"{claim.run_id}/node{self._group.node}"

    def _watch(self, claim: Claim, stage: StageProcess) -> bool:
        """Watches until the stage has ended (True), or its attempt is over for the first node."""
        deadline = guardian.now() + STAGE_SHARE * self._settings.lease_seconds
        stage.extend(deadline)
        looked = guardian.now()
        while not stage.ended(0.1):
            _drain(stage)
            if self._stopping.is_set():
                return False
            if guardian.now() - looked < self._look_seconds:
                continue
            looked = guardian.now()
            try:
                if self._claim_of_leader() != claim:
                    return False
            except SQLAlchemyError as error:
                # The guardian's deadline settles what happens if this persists.
                log.warning("node %d does not reach the database: %s", self._group.node, error)
                continue
            stage.extend(looked + STAGE_SHARE * self._settings.lease_seconds)
        _drain(stage)
        return True


def _drain(stage: StageProcess) -> None:
    """The first process's output is read by the first node; a full queue would stall this one."""
    while True:
        try:
            stage.events.get_nowait()
        except queue.Empty:
            return
