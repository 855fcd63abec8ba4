"""Leases: who may work on a row, by the database's clock, and the fence that every write of the work passes.

A lease is (row, attempt, owner). It is valid while the row matches and is open; a newer attempt, an ending or a
cancellation makes it worthless, whatever its holder believes. Its holder finds out at the next write, which is rolled
back. No clock but the database's is read.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from steerboard_contracts.errors import SteerboardError

Row = TypeVar("Row")


class LeaseLost(SteerboardError):
    """A newer attempt, an ending or another worker has taken the work: this attempt may write nothing more."""

    code = "lease_lost"
    status = 409
    title = "The work belongs to another attempt"


@dataclass(frozen=True)
class Lease:
    """The right of `owner` to act for attempt `attempt` of a row."""

    id: uuid.UUID
    attempt: int
    owner: Any


def now() -> ColumnElement[Any]:
    """The database's clock, which advances within a transaction."""
    return func.clock_timestamp()


def lease_end(seconds: float) -> ColumnElement[Any]:
    return now() + dt.timedelta(seconds=seconds)


def expired(lease_expires_at: Any) -> ColumnElement[bool]:
    """No one has a lease, or it has run out."""
    return or_(lease_expires_at.is_(None), lease_expires_at < now())


def take_away(row: Any) -> None:
    """The lease on a row, which is locked: its work has ended, or waits to be claimed."""
    row.lease_owner = row.lease_expires_at = None


class Leases(Generic[Row]):
    """The leases on one table, which has `id`, `attempt`, `lease_owner` and `lease_expires_at`.

    `open`: which rows can be worked on at all. `key_share`: lock rows so that others may still refer to them.
    """

    def __init__(self, table: type[Row], what: str, *, open: ColumnElement[bool], key_share: bool = True) -> None:
        self._row = table
        self._table: Any = table
        self._what = what
        self._open = open
        self._key_share = key_share

    def free(self) -> ColumnElement[bool]:
        """Open, and no one's lease on it is good."""
        return and_(self._open, expired(self._table.lease_expires_at))

    def held(self) -> ColumnElement[bool]:
        """Open, and someone's lease on it is good."""
        return and_(self._open, self._table.lease_expires_at > now())

    def first(self, session: Session, *where: ColumnElement[bool], order_by: tuple[Any, ...]) -> Row | None:
        """The first row of `where` that no other transaction has locked, locked for this one."""
        return next(iter(self.all(session, *where, order_by=order_by, limit=1)), None)

    def all(
        self, session: Session, *where: ColumnElement[bool], order_by: tuple[Any, ...], limit: int
    ) -> Sequence[Row]:
        """The same for up to `limit` rows."""
        query = select(self._row).where(*where).order_by(*order_by).limit(limit)
        locked = query.with_for_update(key_share=self._key_share, skip_locked=True)
        return session.scalars(locked.execution_options(populate_existing=True)).all()

    def grant(self, row: Row, owner: Any, seconds: float) -> Lease:
        """Begin another attempt at `row`, which is locked."""
        leased: Any = row
        leased.attempt += 1
        leased.lease_owner = owner
        leased.lease_expires_at = lease_end(seconds)
        return Lease(leased.id, leased.attempt, owner)

    def holds(self, lease: Lease) -> ColumnElement[bool]:
        """Whether the lease is valid: the row is open and matches."""
        table = self._table
        same = and_(table.id == lease.id, table.attempt == lease.attempt, table.lease_owner == lease.owner)
        return and_(same, self._open)

    def fenced(self, session: Session, lease: Lease) -> Row:
        """The row, locked for this transaction. Raises `LeaseLost`.

        Every write of the work starts here. Locking first, before anything else of the transaction, also keeps the
        order of locks the same everywhere.
        """
        query = select(self._row).where(self.holds(lease)).with_for_update(key_share=self._key_share)
        row = session.scalars(query.execution_options(populate_existing=True)).first()
        if row is None:
            raise self.lost(lease)
        return row

    def check(self, session: Session, lease: Lease) -> None:
        """Raises `LeaseLost` when the lease is no longer good. Locks nothing."""
        if session.scalar(select(self._table.id).where(self.holds(lease))) is None:
            raise self.lost(lease)

    def renew(self, session: Session, lease: Lease, seconds: float, *, waits: bool = True) -> bool:
        """Push the end out. False when the lease is no longer good, or, unless it `waits`, while another transaction
        has the row."""
        held = self.holds(lease)
        if not waits:
            row = select(self._table.id).where(held).with_for_update(key_share=self._key_share, skip_locked=True)
            if session.scalar(row) is None:
                return False
        renewed = update(self._row).where(held).values(lease_expires_at=lease_end(seconds))
        return session.scalar(renewed.returning(self._table.id)) is not None

    def renew_all(self, session: Session, owner: Any, ids: Collection[uuid.UUID], seconds: float) -> None:
        """Push out the ends of an owner's leases on those of these rows that are open."""
        owned = and_(self._table.id.in_(ids), self._table.lease_owner == owner, self._open)
        session.execute(update(self._row).where(owned).values(lease_expires_at=lease_end(seconds)))

    def give_back(self, session: Session, lease: Lease, *, tried: bool, pause_seconds: float | None = None) -> None:
        """Let someone else work on it, after a pause. `tried` False: the attempt does not count. Does nothing when the
        lease is no longer good."""
        session.execute(
            update(self._row)
            .where(self.holds(lease))
            .values(
                lease_owner=None,
                lease_expires_at=None if pause_seconds is None else lease_end(pause_seconds),
                attempt=self._table.attempt - (0 if tried else 1),
            )
        )

    def lost(self, lease: Lease) -> LeaseLost:
        return LeaseLost(f"attempt {lease.attempt} of {self._what} {lease.id} no longer holds its lease")
