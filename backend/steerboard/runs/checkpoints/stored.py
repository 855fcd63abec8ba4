"""Checkpoints in the artifact store, from which an attempt on another machine resumes.

Their files are named `checkpoints/RUN/aN-step-M/FILE` and are not blobs: a checkpoint is some three times its model,
new ones come every few minutes, and each goes as soon as two newer ones are there. They are in no backup.

Files first, then the row, and the row only behind the fence: what has a row was whole, and an attempt that has lost its
run adds none, however late its upload ends. Names carry the attempt, so no one ever writes over another's files. Files
without a row, as a crash in between leaves them, go with the run's next checkpoint, or with `steerboard gc`.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from steerboard.platform.storage.artifacts import CHECKPOINTS, ArtifactStore
from steerboard.runs.state import claims
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import RunCheckpoint
from steerboard_contracts.stage.checkpoints import checkpoint_name, checkpoint_place

KEEP = 2


def folder_of(run_id: uuid.UUID, name: str = "") -> str:
    """The place in the store where the checkpoints of a run, or one of them, begin."""
    return f"{CHECKPOINTS}{run_id}/" + (f"{name}/" if name else "")


def stored(session: Session, run_id: uuid.UUID) -> list[RunCheckpoint]:
    """Newest first."""
    order = (RunCheckpoint.step.desc(), RunCheckpoint.attempt.desc())
    return list(session.scalars(select(RunCheckpoint).where(RunCheckpoint.run_id == run_id).order_by(*order)))


def register(session: Session, claim: Claim, step: int, files: list[dict[str, Any]]) -> set[str]:
    """A checkpoint of this attempt whose files are in the store. Returns the names of those that stay.

    Raises `LeaseLost`.
    """
    claims.fenced(session, claim)
    new = session.merge(RunCheckpoint(run_id=claim.run_id, attempt=claim.attempt, step=step, files=files))
    session.flush()
    others = [checkpoint for checkpoint in stored(session, claim.run_id) if checkpoint is not new]
    for old in others[KEEP - 1 :]:
        session.delete(old)
    return {checkpoint_name(checkpoint.attempt, checkpoint.step) for checkpoint in (new, *others[: KEEP - 1])}


def forget(session: Session, claim: Claim, checkpoint: RunCheckpoint | None = None) -> None:
    """One that turned out to be damaged, or all: the run has succeeded. Raises `LeaseLost`."""
    claims.fenced(session, claim)
    which = [RunCheckpoint.run_id == claim.run_id]
    if checkpoint is not None:
        which += [RunCheckpoint.attempt == checkpoint.attempt, RunCheckpoint.step == checkpoint.step]
    session.execute(delete(RunCheckpoint).where(*which))


def clear(store: ArtifactStore, claim: Claim, keep: Collection[str] = ()) -> None:
    """Remove the files of the run's other checkpoints, but none of a newer attempt's."""
    for name in store.storage.folders(folder_of(claim.run_id)):
        place = checkpoint_place(name)
        if place is not None and place[1] <= claim.attempt and name not in keep:
            store.storage.remove_folder(folder_of(claim.run_id, name))
