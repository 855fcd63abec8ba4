"""The newest checkpoint of a run from the artifact store, where this machine has none that is as new."""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore, CorruptArtifact, safe_member, verified
from steerboard.platform.storage.disk import create_file
from steerboard.runs import progress_log
from steerboard.runs.checkpoints import stored as stored_checkpoints
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import RunCheckpoint
from steerboard_contracts.stage.checkpoints import checkpoint_name, checkpoint_place

log = logging.getLogger(__name__)

_FETCHED_AT_ONCE = 4


def fetch_newest(sessions: sessionmaker[Session], store: ArtifactStore, claim: Claim, folder: Path) -> None:
    """Fetches into `folder`, each file verified; the checkpoint appears whole or not at all. A damaged one is
    forgotten, and the next one is tried.

    Raises `LeaseLost`, `StoreUnavailable` and its like, `NoSpaceLeft`.
    """
    with transaction(sessions) as session:
        checkpoints = stored_checkpoints.stored(session, claim.run_id)
    here = max((place for path in folder.iterdir() if (place := checkpoint_place(path.name))), default=(0, 0))
    for checkpoint in checkpoints:
        name = checkpoint_name(checkpoint.attempt, checkpoint.step)
        if (checkpoint.step, checkpoint.attempt) < here or _is_whole(folder / name, checkpoint):
            return
        try:
            _fetch(store, checkpoint, name, folder)
        except CorruptArtifact as error:
            log.warning("checkpoint %s is not used: %s", name, error)
            with transaction(sessions) as session:
                stored_checkpoints.forget(session, claim, checkpoint)
            _say(sessions, claim, "warning", f"checkpoint {name} of the artifact store is not used: {error.detail}")
            continue
        _say(sessions, claim, "info", f"checkpoint {name} was fetched from the artifact store")
        return


def _is_whole(folder: Path, checkpoint: RunCheckpoint) -> bool:
    """Compares sizes; the stage verifies what it reads."""
    try:
        return all((folder / file["path"]).stat().st_size == file["size"] for file in checkpoint.files)
    except OSError:
        return False


def _fetch(store: ArtifactStore, checkpoint: RunCheckpoint, name: str, folder: Path) -> None:
    temporary = folder / f".{name}.{uuid.uuid4().hex}.partial"
    temporary.mkdir()
    place = stored_checkpoints.folder_of(checkpoint.run_id, name)

    def fetch(file: dict[str, Any]) -> None:
        path = safe_member(file["path"])
        try:
            content = store.storage.open(place + path)
        except FileNotFoundError:
            raise CorruptArtifact(f"{path} is missing from the artifact store") from None
        with content, create_file(temporary / path, "a checkpoint") as target:
            for chunk in verified(content, file["sha256"], path):
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())

    try:
        with ThreadPoolExecutor(_FETCHED_AT_ONCE if store.storage.remote else 1) as pool:
            for _ in pool.map(fetch, checkpoint.files):
                pass
        shutil.rmtree(folder / name, ignore_errors=True)
        temporary.rename(folder / name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _say(sessions: sessionmaker[Session], claim: Claim, level: str, line: str) -> None:
    with transaction(sessions) as session:
        progress_log.write(session, claim, progress_log.Batch(logs=[(level, line)]))
