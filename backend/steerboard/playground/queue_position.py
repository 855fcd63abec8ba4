"""What an open answer or curve waits for, in words for people."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.playground.claims import POOL
from steerboard.playground.tables import Comparison, Curve
from steerboard.runs.tables import WorkerRow

NO_WORKER = "no interactive worker is alive: `steerboard worker --pool interactive`"


class Waiting:
    """Reads the state of the interactive workers once, for all things of one request."""

    def __init__(self, session: Session, lease_seconds: float, things: Iterable[Comparison | Curve]) -> None:
        self._session = session
        self._lease = dt.timedelta(seconds=lease_seconds)
        self._reasons: dict[uuid.UUID, str] = {}
        unclaimed = [thing for thing in things if thing.ended_at is None]
        if not unclaimed:
            return
        now = session.scalar(select(func.clock_timestamp()))
        assert now is not None
        alive = self._alive()
        for thing in unclaimed:
            if thing.lease_owner is not None and thing.lease_expires_at is not None and thing.lease_expires_at > now:
                continue
            if not alive:
                self._reasons[thing.id] = NO_WORKER
            elif thing.lease_owner is not None:
                self._reasons[thing.id] = "its worker was lost; another one starts it over"
            else:
                self._reasons[thing.id] = self._ahead(thing)

    def of(self, thing: Comparison | Curve, noted: str | None) -> str | None:
        """`noted` is what its worker noted, if it has one."""
        return self._reasons.get(thing.id, noted)

    def _alive(self) -> bool:
        fresh = WorkerRow.heartbeat_at > func.clock_timestamp() - self._lease
        return self._session.scalar(select(WorkerRow.id).where(WorkerRow.pool == POOL, fresh).limit(1)) is not None

    def _ahead(self, thing: Comparison | Curve) -> str:
        """Comparisons come before curves, and older ones first."""
        open_comparisons = select(func.count()).select_from(Comparison).where(Comparison.ended_at.is_(None))
        if isinstance(thing, Comparison):
            ahead = self._session.scalar(open_comparisons.where(Comparison.id < thing.id)) or 0
            return _counted(ahead, "comparison") or "a worker is about to begin"
        ahead = self._session.scalar(open_comparisons) or 0
        curves = select(func.count()).select_from(Curve).where(Curve.ended_at.is_(None), Curve.id < thing.id)
        others = self._session.scalar(curves) or 0
        return _counted(others, "curve") or _counted(ahead, "comparison") or "a worker is about to begin"


def _counted(number: int, what: str) -> str | None:
    if number == 0:
        return None
    return f"{number} {what}s are ahead" if number > 1 else f"1 {what} is ahead"
