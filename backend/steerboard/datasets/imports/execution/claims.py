"""Who may work on an import: a lease in Postgres, by the database's clock, that every write of the work names.

Cancelling, changing or deleting the import takes the lease away (`platform.leases`).
"""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from steerboard.datasets.errors import ImportInterrupted
from steerboard.datasets.imports.detection import problem_of
from steerboard.datasets.imports.tables import WORKING, Import
from steerboard.platform.events.log import emit
from steerboard.platform.leases import Lease, Leases, take_away

LEASES = Leases(Import, "import", open=Import.state.in_(WORKING), key_share=False)


def claim_next(session: Session, lease_seconds: float, max_attempts: int) -> Lease | None:
    """Lease the import that has waited longest. One that was tried too often fails on the way."""
    while True:
        row = LEASES.first(session, LEASES.free(), order_by=(Import.updated_at,))
        if row is None:
            return None
        if row.attempt >= max_attempts:
            interrupted = ImportInterrupted(
                f"the process that read the file ended {row.attempt} times prematurely",
                hint="The server may have been stopped or run out of memory; start the import again.",
            )
            end(session, row, "failed", problem=problem_of(interrupted))
            session.flush()
            continue
        row.progress = {"read": 0, "bytes": 0, "total_bytes": row.size, "rows": 0}
        lease = LEASES.grant(row, uuid.uuid4(), lease_seconds)
        session.flush()
        return lease


def renew(session: Session, lease: Lease, lease_seconds: float) -> bool:
    """Push the lease's end out. False when it is no longer good."""
    return LEASES.renew(session, lease, lease_seconds)


def give_back(session: Session, lease: Lease, pause_seconds: float, *, tried: bool) -> None:
    """Let someone else work on it, after a pause. `tried` False: the attempt does not count."""
    LEASES.give_back(session, lease, tried=tried, pause_seconds=pause_seconds)


def fenced(session: Session, lease: Lease) -> Import:
    """The row, locked for this transaction. Raises `LeaseLost`."""
    return LEASES.fenced(session, lease)


def note_progress(session: Session, lease: Lease, progress: dict[str, int]) -> None:
    """Keep and announce how far the work is. Raises `LeaseLost`."""
    noted = update(Import).where(LEASES.holds(lease)).values(progress=progress)
    row = session.execute(noted.returning(Import.project_id, Import.state)).first()
    if row is None:
        raise LEASES.lost(lease)
    parts = {name: progress[name] for name in ("read", "bytes", "total_bytes")}
    emit(session, row.project_id, "import.progress", {"id": str(lease.id), "state": row.state, **parts})


def end(session: Session, row: Import, state: str, **values: Any) -> None:
    """Leave the working states, take the lease away, and tell the project. `row` is locked by the caller.

    The row is always locked before the project's stream, so that endings never wait for each other in a circle.
    """
    for name, value in values.items():
        setattr(row, name, value)
    row.state = state
    take_away(row)
    session.flush()
    payload = {"id": str(row.id), "name": row.name, "state": state}
    if row.dataset_id:
        payload["dataset_id"] = str(row.dataset_id)
    emit(session, row.project_id, "import.ended", payload)
