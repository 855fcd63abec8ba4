"""What a worker knows of the attempt that it has in hand."""

from __future__ import annotations

from dataclasses import dataclass

from steerboard.platform.storage.disk import disk_of
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run
from steerboard_contracts.files.disk import Disk
from steerboard_contracts.stage.events import Paused
from steerboard_workers.supervisor.checkpoints.uploads import CheckpointUploads
from steerboard_workers.supervisor.lease import LeaseKeeper
from steerboard_workers.supervisor.workspace import Workspace


@dataclass
class Attempt:
    """`worker`: what this worker is called. `began`: when the first attempt did, by this machine's monotonic clock."""

    claim: Claim
    run: Run
    workspace: Workspace
    lease: LeaseKeeper
    threads: int
    worker: str
    began: float
    device_seconds: float = 0.0
    succeeded: bool = False
    paused: Paused | None = None
    uploads: CheckpointUploads | None = None

    @property
    def disk(self) -> Disk:
        return disk_of(self.workspace.directory, "the run's files")
