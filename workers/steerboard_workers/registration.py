"""A worker's row in the list of workers."""

from __future__ import annotations

import os
import socket
import uuid
from typing import Any

from sqlalchemy import delete, func, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.runs.tables import WorkerRow


def beat(session: Session, id_: uuid.UUID, name: str, pool: str, **values: Any) -> None:
    """Note that the worker lives, and `values` of its row, which is made where it is not there."""
    beaten = update(WorkerRow).where(WorkerRow.id == id_).values(heartbeat_at=func.clock_timestamp(), **values)
    if session.execute(beaten).rowcount == 0:  # type: ignore[attr-defined]
        session.add(WorkerRow(id=id_, name=name, pool=pool, host=socket.gethostname(), pid=os.getpid(), **values))


def leave(sessions: sessionmaker[Session], id_: uuid.UUID) -> None:
    """Remove the row."""
    with transaction(sessions) as session:
        session.execute(delete(WorkerRow).where(WorkerRow.id == id_))
