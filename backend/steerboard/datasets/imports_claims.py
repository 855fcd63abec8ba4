"""Who may work on an import: a lease in Postgres, by the database's clock, that every write of the work names.

A lease is good while the row names it. Whoever cancels, changes or deletes the import takes it away, and the process
that still works finds out at its next write; its transaction is rolled back.
"""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from steerboard.datasets.errors import ImportInterrupted
from steerboard.datasets.imports_detection import problem_of
from steerboard.datasets.imports_tables import WORKING, Import
from steerboard.platform.events import emit
from steerboard.runs.errors import LeaseLost


@dataclass(frozen=True)
class Lease:
    """The right to work on an import. `owner` is new with every claim."""

    import_id: uuid.UUID
    owner: uuid.UUID


def claim_next(session: Session, lease_seconds: float, max_attempts: int) -> Lease | None:
    """Lease the import that has waited longest. One that was tried too often fails on the way."""
    while True:
        row = session.scalars(
            select(Import)
            .where(
                Import.state.in_(WORKING),
                or_(Import.lease_expires_at.is_(None), Import.lease_expires_at < func.clock_timestamp()),
            )
            .order_by(Import.updated_at)
            .limit(1)
            .with_for_update(skip_locked=True)
            .execution_options(populate_existing=True)
        ).first()
        if row is None:
            return None
        if row.attempt >= max_attempts:
            interrupted = ImportInterrupted(
                f"the process that read the file ended {row.attempt} times before its end",
                hint="The server may have been stopped or run out of memory; start the import again.",
            )
            end(session, row, "failed", problem=problem_of(interrupted))
            session.flush()
            continue
        row.attempt += 1
        row.lease_owner = uuid.uuid4()
        row.lease_expires_at = _from_now(lease_seconds)
        row.progress = {"read": 0, "bytes": 0, "total_bytes": row.size, "rows": 0}
        session.flush()
        return Lease(row.id, row.lease_owner)


def renew(session: Session, lease: Lease, lease_seconds: float) -> bool:
    """Push the lease's end out. False when it is no longer good."""
    renewed = update(Import).where(_holds(lease)).values(lease_expires_at=_from_now(lease_seconds))
    return session.scalar(renewed.returning(Import.id)) is not None


def give_back(session: Session, lease: Lease, pause_seconds: float, *, tried: bool) -> None:
    """Let somebody else work on it, after a pause. `tried` False: the attempt does not count."""
    session.execute(
        update(Import)
        .where(_holds(lease))
        .values(
            lease_owner=None,
            lease_expires_at=_from_now(pause_seconds),
            attempt=Import.attempt - (0 if tried else 1),
        )
    )


def fenced(session: Session, lease: Lease) -> Import:
    """The row, locked for this transaction. Raises `LeaseLost`."""
    row = session.scalars(
        select(Import).where(_holds(lease)).with_for_update().execution_options(populate_existing=True)
    ).first()
    if row is None:
        raise LeaseLost(f"import {lease.import_id} is no longer ours")
    return row


def note_progress(session: Session, lease: Lease, progress: dict[str, int]) -> None:
    """Keep and announce how far the work is. Raises `LeaseLost`."""
    noted = update(Import).where(_holds(lease)).values(progress=progress).returning(Import.project_id, Import.state)
    found = session.execute(noted).first()
    if found is None:
        raise LeaseLost(f"import {lease.import_id} is no longer ours")
    parts = {name: progress[name] for name in ("read", "bytes", "total_bytes")}
    emit(session, found.project_id, "import.progress", {"id": str(lease.import_id), "state": found.state, **parts})


def end(session: Session, row: Import, state: str, **values: Any) -> None:
    """Leave the working states, take the lease away, and tell the project. `row` is locked by the caller.

    The row is always locked before the project's stream, so that endings never wait for each other in a circle.
    """
    for name, value in values.items():
        setattr(row, name, value)
    row.state = state
    row.lease_owner = row.lease_expires_at = None
    session.flush()
    payload = {"id": str(row.id), "name": row.name, "state": state}
    if row.dataset_id:
        payload["dataset_id"] = str(row.dataset_id)
    emit(session, row.project_id, "import.ended", payload)


def _holds(lease: Lease) -> ColumnElement[bool]:
    return and_(Import.id == lease.import_id, Import.lease_owner == lease.owner, Import.state.in_(WORKING))


def _from_now(seconds: float) -> ColumnElement[Any]:
    return func.clock_timestamp() + dt.timedelta(seconds=seconds)
