"""Events about runs, written at the very end of their transaction.

Adding an event locks the project's event stream until the commit. A transaction that took that lock first and a run's
row second would deadlock with one that goes the other way, so the stream always comes last.
"""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from steerboard.platform import events

_WAITING = "steerboard.run_events"


def announce(session: Session, project_id: uuid.UUID, type_: str, payload: dict[str, Any]) -> None:
    """Emit an event when, and only when, the transaction commits."""
    session.info.setdefault(_WAITING, []).append((project_id, type_, payload))


@event.listens_for(Session, "before_commit")
def _emit(session: Session) -> None:
    if session.in_nested_transaction():  # a savepoint ends, not the transaction
        return
    for project_id, type_, payload in session.info.pop(_WAITING, []):
        events.emit(session, project_id, type_, payload)


@event.listens_for(Session, "after_rollback")
def _forget(session: Session) -> None:
    if not session.in_nested_transaction():
        session.info.pop(_WAITING, None)
