"""Events about runs, and what notices tell of their ends, written at the very end of their transaction.

Adding an event locks the project's event stream until the commit. A transaction that took that lock first and a run's
row second would deadlock with one that goes the other way, so the stream always comes last.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from steerboard.platform.events import log as events
from steerboard.runs import hooks
from steerboard.runs.tables import Run

_WAITING = "steerboard.run_events"
_ENDED = "steerboard.ended_runs"
_NEWS = "steerboard.run_news"


def announce(session: Session, project_id: uuid.UUID, type_: str, payload: dict[str, Any]) -> None:
    """Emit an event when, and only when, the transaction commits."""
    session.info.setdefault(_WAITING, []).append((project_id, type_, payload))


def note_end(session: Session, run: Run) -> None:
    """Tell notices that `run` has ended when the transaction commits, unless it continues before that."""
    session.info.setdefault(_ENDED, {})[run.id] = run


def note_news(session: Session, news: hooks.News) -> None:
    """Tell notices of something else than an end when the transaction commits."""
    session.info.setdefault(_NEWS, []).append(news)


@contextmanager
def discard_on_rollback(session: Session) -> Iterator[None]:
    """A block for a savepoint: what is announced inside is forgotten where it is undone by an error."""
    waiting, ended = list(session.info.get(_WAITING, ())), dict(session.info.get(_ENDED, {}))
    news = list(session.info.get(_NEWS, ()))
    try:
        yield
    except BaseException:
        session.info[_WAITING], session.info[_ENDED], session.info[_NEWS] = waiting, ended, news
        raise


@event.listens_for(Session, "before_commit")
def _emit(session: Session) -> None:
    if session.in_nested_transaction():  # a savepoint ends, not the transaction
        return
    for project_id, type_, payload in session.info.pop(_WAITING, []):
        events.emit(session, project_id, type_, payload)
    # After the events, which hold the lock of the stream: see `write_endings`.
    ended = session.info.pop(_ENDED, {})
    if ended:
        hooks.ended(session, ended.values())
    news = session.info.pop(_NEWS, [])
    if news:
        hooks.news(session, news)


@event.listens_for(Session, "after_rollback")
def _forget(session: Session) -> None:
    if not session.in_nested_transaction():
        session.info.pop(_WAITING, None)
        session.info.pop(_ENDED, None)
        session.info.pop(_NEWS, None)
