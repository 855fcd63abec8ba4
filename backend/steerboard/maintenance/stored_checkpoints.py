"""`steerboard gc` on checkpoints in the artifact store: those of runs that have ended, and files that a crash left."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import defaultdict
from dataclasses import dataclass

from sqlalchemy import Engine, delete, func, select
from sqlalchemy.orm import Session

from steerboard.maintenance.garbage_collection import UPLOAD_AGE
from steerboard.platform.storage.artifacts import CHECKPOINTS, ArtifactStore
from steerboard.platform.storage.protocol import Stored
from steerboard.runs.checkpoints.stored import folder_of, stored
from steerboard.runs.tables import Run, RunCheckpoint
from steerboard_contracts.stage.checkpoints import checkpoint_name, checkpoint_place


@dataclass
class ClearedCheckpoints:
    """What was removed from the store, or would be."""

    checkpoints: int = 0
    bytes: int = 0


def clear_stored(
    engine: Engine,
    store: ArtifactStore,
    *,
    age: dt.timedelta,
    dry_run: bool = False,
    upload_age: dt.timedelta = UPLOAD_AGE,
) -> ClearedCheckpoints:
    """Clears the checkpoints of runs that have succeeded, and of runs that ended in another way, or that the database
    does not know, longer than `age` ago. Other runs lose only checkpoints without a row that are older than
    `upload_age`: one on its way has none yet."""
    done = ClearedCheckpoints()
    for folder in store.storage.folders(CHECKPOINTS):
        try:
            run_id = uuid.UUID(folder)
        except ValueError:
            continue
        files: dict[str, list[Stored]] = defaultdict(list)
        for file in store.storage.files(folder_of(run_id)):
            files[file.name.removeprefix(folder_of(run_id)).partition("/")[0]].append(file)
        newest = {name: max(file.modified for file in those) for name, those in files.items()}
        for name in _unneeded(engine, run_id, newest, age, upload_age, dry_run):
            done.checkpoints += 1
            done.bytes += sum(file.size for file in files[name])
            if not dry_run:
                store.storage.remove_folder(folder_of(run_id, name))
    return done


def _unneeded(
    engine: Engine,
    run_id: uuid.UUID,
    times: dict[str, dt.datetime],
    age: dt.timedelta,
    upload_age: dt.timedelta,
    dry_run: bool,
) -> list[str]:
    """The names that no run needs, out of `times`, which holds the time of each. Rows are removed before files, with
    the run's row locked: a resumed run finds none, and the names of its new attempt are not among these."""
    now = dt.datetime.now(dt.UTC)
    with Session(engine) as session, session.begin():
        run = session.execute(
            select(Run.state, Run.attempt, (func.clock_timestamp() - Run.ended_at).label("ended"))
            .where(Run.id == run_id)
            .with_for_update(key_share=True)
        ).one_or_none()
        if run is None:
            return [name for name in times if times[name] < now - age]
        if run.state == "succeeded" or (run.state in ("failed", "cancelled") and run.ended > age):
            if not dry_run:
                session.execute(delete(RunCheckpoint).where(RunCheckpoint.run_id == run_id))
            return [name for name in times if (checkpoint_place(name) or (0, 0))[1] <= run.attempt]
        known = {checkpoint_name(checkpoint.attempt, checkpoint.step) for checkpoint in stored(session, run_id)}
    return [name for name in times if name not in known and times[name] < now - upload_age]
