"""The live events of a project: a log in Postgres with ids in commit order, and Redis as the wake-up only."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Sequence
from typing import Any

import redis
from sqlalchemy import Row, bindparam, select, update
from sqlalchemy import event as orm_event
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.platform.events.redis_url import connect
from steerboard.platform.events.tables import Event, EventStream
from steerboard.platform.settings import get_settings

log = logging.getLogger(__name__)

_CHANNELS = "steerboard.channels"

# Built once: some of what is emitted comes a hundred times a second.
_STEP = (
    update(EventStream)
    .where(EventStream.project_id == bindparam("project"))
    .values(last_id=EventStream.last_id + 1)
    .returning(EventStream.last_id)
    .execution_options(synchronize_session=False)
)


def channel(project_id: uuid.UUID) -> str:
    """Redis channel that signals new events of this project."""
    return f"steerboard.events.{project_id}"


def emit(session: Session, project_id: uuid.UUID, type: str, payload: dict[str, Any]) -> None:
    """Add an event. The stream's row stays locked until commit, so ids are committed in their order.

    Call it late in a transaction: other writers of the project wait from here to the commit.
    """
    of_project = {"project": project_id}
    last = session.scalar(_STEP, of_project)
    if last is None:
        session.execute(insert(EventStream).values(project_id=project_id, last_id=0).on_conflict_do_nothing())
        last = session.scalar(_STEP, of_project)
    session.add(Event(project_id=project_id, id=last, type=type, payload=payload))
    wake(session, channel(project_id))


def wake(session: Session, channel: str) -> None:
    """Say on a Redis channel, when and only when the transaction commits, that there is something new to read."""
    session.info.setdefault(_CHANNELS, set()).add(channel)


def read_after(
    session: Session, project_id: uuid.UUID, after: int, limit: int = 500
) -> Sequence[Row[int, str, dt.datetime, dict[str, Any]]]:
    """(id, type, created_at, payload) of the events after `after`, in their order."""
    query = select(Event.id, Event.type, Event.created_at, Event.payload)
    conditions = Event.project_id == project_id, Event.id > after
    return session.execute(query.where(*conditions).order_by(Event.id).limit(limit)).all()


def last_id(session: Session, project_id: uuid.UUID) -> int:
    return session.scalar(select(EventStream.last_id).where(EventStream.project_id == project_id)) or 0


_clients: dict[str, redis.Redis] = {}


def _client(url: str) -> redis.Redis:
    if url not in _clients:
        _clients[url] = connect(url, seconds=0.5)
    return _clients[url]


@orm_event.listens_for(Session, "after_commit")
def _wake_readers(session: Session) -> None:
    if session.in_nested_transaction():
        return
    url = get_settings().redis_url
    for name in session.info.pop(_CHANNELS, set()):
        if not url:
            continue
        try:
            _client(url).publish(name, "")
        except redis.RedisError as error:
            # Readers also poll, so a broker that is away only makes them later.
            log.debug("no wake-up on %s: %s", name, error)


@orm_event.listens_for(Session, "after_rollback")
def _forget(session: Session) -> None:
    session.info.pop(_CHANNELS, None)
