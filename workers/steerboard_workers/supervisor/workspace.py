"""The folder where a worker keeps a run's files.

    HOME/work/RUN/checkpoints/   shared by all attempts, kept until the run has succeeded
    HOME/work/RUN/aN/            attempt N: stage.json, outputs/, and `checkpoints` leading to the above
    HOME/cache/                  inputs, shared by all runs and read-only (`platform.storage.local_cache`)

An attempt has a folder of its own so that a worker that was frozen and wakes up later touches nothing of its successor.
"""

from __future__ import annotations

import shutil
import uuid
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.storage.folder_lock import working_in
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run
from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec
from steerboard_contracts.watching.control import CONTROL_FILE, Control


class Workspace:
    """A context: what the attempt holds, its folder and inputs of the cache, is let go at the end, however that
    comes."""

    def __init__(self, home: Path, claim: Claim) -> None:
        self._run = home / "work" / str(claim.run_id)
        self.directory = self._run / f"a{claim.attempt}"
        self.checkpoints = self._run / "checkpoints"
        self.holds = ExitStack()
        self._control = Control()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.holds.close()

    def open(self) -> None:
        """Make the attempt's folder, and clear away those of attempts that ended too suddenly to do it themselves."""
        self.holds.enter_context(working_in(self._run))
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        for other in self._run.glob("a*"):
            if other != self.directory:
                shutil.rmtree(other, ignore_errors=True)
        self.directory.mkdir(exist_ok=True)
        link = self.directory / "checkpoints"
        if not link.is_symlink():
            link.symlink_to(Path("..") / "checkpoints")

    def write_spec(self, spec: StageSpec) -> None:
        (self.directory / STAGE_FILE).write_text(spec.model_dump_json(indent=2) + "\n")

    def write_control(self, control: Control) -> None:
        """Writes the file whole, and only where something is different from before: the stage reads it at any time."""
        if control == self._control:
            return
        temporary = self.directory / f".{CONTROL_FILE}"
        temporary.write_text(control.model_dump_json())
        temporary.rename(self.directory / CONTROL_FILE)
        self._control = control

    def discard_attempt(self) -> None:
        """Called after an attempt that did not succeed: what it wrote goes, what it can be resumed from stays."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def discard(self) -> None:
        """Called after success: nothing is needed any more."""
        shutil.rmtree(self._run, ignore_errors=True)


def forget_finished(sessions: sessionmaker[Session], home: Path) -> None:
    """Remove what is left of runs that have succeeded, here or on another machine after this one had begun them."""
    folders = {entry.name: entry for entry in (home / "work").glob("*-*")}
    with transaction(sessions) as session:
        finished = session.scalars(
            select(Run.id).where(Run.id.in_([uuid.UUID(name) for name in folders]), Run.state == "succeeded")
        ).all()
    for run_id in finished:
        shutil.rmtree(folders[str(run_id)], ignore_errors=True)
