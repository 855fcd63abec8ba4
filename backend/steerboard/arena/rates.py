"""How fast one person may ask and vote. Counted in Postgres, since Redis may lose what it has."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import uuid

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from steerboard.arena.errors import TooFast
from steerboard.arena.tables import Battle, Turn, Vote

WINDOW = dt.timedelta(minutes=1)
TURNS = 20
# Votes that waited in a browser come together; those that are too many are sent again later.
VOTES = 60


def take_turn(session: Session, user_id: uuid.UUID) -> None:
    """Called before a turn of a battle is asked. Raises `TooFast`."""
    turns = select(Turn.created_at).join(Battle, Battle.id == Turn.battle_id).where(Battle.user_id == user_id)
    _wait_for(session, user_id, turns.order_by(Turn.created_at.desc()), TURNS, "questions")


def take_vote(session: Session, user_id: uuid.UUID) -> None:
    """Called before a vote is stored; one person's votes are then stored one after the other. Raises `TooFast`."""
    votes = select(Vote.created_at).where(Vote.user_id == user_id).order_by(Vote.created_at.desc())
    _wait_for(session, user_id, votes, VOTES, "votes")


def _wait_for(session: Session, user_id: uuid.UUID, newest: Select[dt.datetime], limit: int, what: str) -> None:
    session.execute(select(func.pg_advisory_xact_lock(_lock_key(user_id))))
    at = session.scalar(newest.offset(limit - 1).limit(1))
    now = session.scalar(select(func.clock_timestamp()))
    assert now is not None
    if at is None or now - at >= WINDOW:
        return
    seconds = max(1, math.ceil((WINDOW - (now - at)).total_seconds()))
    raise TooFast(
        f"more than {limit} {what} in a minute",
        hint="Wait for the number of seconds in the Retry-After header.",
        extra={"retry_after_seconds": seconds},
    )


def _lock_key(user_id: uuid.UUID) -> int:
    digest = hashlib.sha256(b"arena" + user_id.bytes).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
