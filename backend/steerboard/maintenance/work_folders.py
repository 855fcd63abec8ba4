"""`steerboard gc` on a worker's own disk: checkpoints and folders of runs that have ended, and the cache."""

from __future__ import annotations

import datetime as dt
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from steerboard.platform.storage.folder_lock import alone_in
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.runs.tables import Run

_REMOVING = ".removing."  # and no dash, which the names of runs have


@dataclass
class Cleared:
    """What was removed from this disk, or would be."""

    folders: int = 0
    bytes: int = 0
    cache_bytes: int = 0


def clear(engine: Engine, home: Path, cache_mb: int | None, *, age: dt.timedelta, dry_run: bool = False) -> Cleared:
    """Folders of runs that have succeeded, and of those that ended in another way, or that the database does not know,
    longer than `age` ago: resumed after that, a run begins at its start.

    A folder in use by an attempt stays, whatever the database's state. `cache_mb`: the limit of each cache.
    """
    done = Cleared()
    before = dt.datetime.now(dt.UTC) - age
    # Further nodes of a worker keep theirs apart.
    for place in (home, *sorted(home.glob("nodes/*"))):
        _clear_work(engine, place / "work", before, dry_run, done)
        if not dry_run:
            done.cache_bytes += LocalCache(place / "cache", cache_mb).make_room(0)
    return done


def _clear_work(engine: Engine, work: Path, before: dt.datetime, dry_run: bool, done: Cleared) -> None:
    for killed in () if dry_run else work.glob(f"{_REMOVING}*"):
        shutil.rmtree(killed, ignore_errors=True)
    for folder in sorted(work.glob("*-*")):
        with alone_in(folder) as alone:
            # Asked after the lock was given: an attempt that begins now waits for it, and then finds the folder gone.
            if not alone or not _is_over(engine, folder, before):
                continue
            done.folders += 1
            done.bytes += sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
            if not dry_run:
                gone = folder.with_name(_REMOVING + folder.name.replace("-", ""))
                folder.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)


def _is_over(engine: Engine, folder: Path, before: dt.datetime) -> bool:
    try:
        run_id = uuid.UUID(folder.name)
    except ValueError:
        return False
    with Session(engine) as session:
        row = session.execute(select(Run.state, Run.ended_at).where(Run.id == run_id)).one_or_none()
    if row is None:
        return dt.datetime.fromtimestamp(folder.stat().st_mtime, dt.UTC) < before
    if row.state == "succeeded":
        return True
    return row.state in ("failed", "cancelled") and row.ended_at is not None and row.ended_at < before
