"""Checkpoints of a running attempt on their way to the artifact store, from a thread of its own.

The stage never waits. One checkpoint is under way and one waits; a newer one takes the place of the one that waits, so
a slow store costs checkpoints, not memory or time. The stage keeps its last two and removes older ones: the files of
the one under way are held by hard links in the attempt's folder. Failures to store are noted in the run's log, and
the next one is another try.
"""

from __future__ import annotations

import contextvars
import hashlib
import io
import json
import logging
import os
import shutil
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.storage.artifacts import ArtifactStore, safe_member
from steerboard.runs import progress_log
from steerboard.runs.checkpoints import stored as stored_checkpoints
from steerboard.runs.state.claims import Claim
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage.checkpoints import CHECKPOINT_MANIFEST, checkpoint_name
from steerboard_workers.supervisor.workspace import Workspace

log = logging.getLogger(__name__)

_LEAVE_SECONDS = 5.0


class CheckpointUploads:
    """A context, at whose end what is still under way is given up."""

    def __init__(
        self, sessions: sessionmaker[Session], store: ArtifactStore, claim: Claim, workspace: Workspace
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._claim = claim
        self._workspace = workspace
        self._changed = threading.Condition()
        self._waiting: int | None = None
        self._busy = False
        self._closed = threading.Event()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._work,), name="checkpoints", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def offer(self, step: int) -> None:
        """The stage has a checkpoint of this step in place."""
        with self._changed:
            self._waiting = step
            self._changed.notify_all()

    def settle(self, seconds: float) -> None:
        """Wait until all that was offered is stored, or given up, but no longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed.is_set() or not (self._busy or self._waiting), seconds)

    def close(self) -> None:
        """Give up what is under way."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(_LEAVE_SECONDS)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed.is_set() or self._waiting is not None)
                step, self._waiting = self._waiting, None
                if self._closed.is_set() or step is None:
                    return
                self._busy = True
            try:
                self._store_one(step)
            except LeaseLost:
                self._closed.set()  # the lease's own thread notifies the others
            except Exception as error:
                if not self._closed.is_set():
                    self._explain(step, error)

    def _store_one(self, step: int) -> None:
        name = checkpoint_name(self._claim.attempt, step)
        folder = self._workspace.directory / "uploading" / name
        place = stored_checkpoints.folder_of(self._claim.run_id, name)
        try:
            if not _link(self._workspace.checkpoints / name, folder):
                return  # a newer one is about to be offered
            files = [self._send(folder / file, place, sha256) for file, sha256 in _sums(folder)]
            with transaction(self._sessions) as session:
                kept = stored_checkpoints.register(session, self._claim, step, files)
        except LeaseLost:
            self._store.storage.remove_folder(place)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            stored_checkpoints.clear(self._store, self._claim, kept)
        except (SteerboardError, OSError) as error:
            log.warning("older checkpoints stay in the store for now: %s", error)

    def _send(self, path: Path, place: str, sha256: str | None) -> dict[str, Any]:
        """Sends the file, checked against the sum that the stage took when it wrote it."""
        with open(path, "rb", opener=_no_links) as file:
            if sha256 is None:
                sha256 = _sum_of(file)
            reader = io.BufferedReader(_Leaving(file, self._closed), 1 << 20)
            size = self._store.storage.put(place + path.name, reader, sha256)
        return {"path": path.name, "sha256": sha256, "size": size}

    def _explain(self, step: int, error: Exception) -> None:
        log.warning("checkpoint of step %d is not stored: %s", step, error, exc_info=True)
        why = f"{error.code}: {error.detail}" if isinstance(error, SteerboardError) else type(error).__name__
        line = f"the checkpoint of step {step} is on this worker's disk only, because it could not be stored: {why}"
        try:
            with transaction(self._sessions) as session:
                progress_log.write(session, self._claim, progress_log.Batch(logs=[("warning", line)]))
        except (LeaseLost, SQLAlchemyError):
            log.warning("this cannot be written to the run's log either")


class _GivenUp(Exception):
    """The attempt has ended."""


class _Leaving(io.RawIOBase):
    """A file that ends early once its reader should stop."""

    def __init__(self, file: io.BufferedReader, closed: threading.Event) -> None:
        self._file = file
        self._left = closed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left.is_set():
            raise _GivenUp
        return self._file.readinto(buffer)


def _link(source: Path, folder: Path) -> bool:
    """Whether it was still there: the stage removes it after two newer ones."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        for path in source.iterdir():
            os.link(path, folder / path.name, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _sums(folder: Path) -> list[tuple[str, str | None]]:
    """The files of a checkpoint with their sums, the manifest last. The names are a stage's word."""
    with open(folder / CHECKPOINT_MANIFEST, "rb", opener=_no_links) as file:
        sums = json.load(file)["files"]
    return [*((Path(safe_member(name)).name, sums[name]) for name in sorted(sums)), (CHECKPOINT_MANIFEST, None)]


def _sum_of(file: io.BufferedReader) -> str:
    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return sha256


def _no_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)
