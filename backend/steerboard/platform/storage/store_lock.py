"""Nothing is removed from the artifact store while someone relies on it.

Storing a folder first checks which of its blobs exist, and commits the reference to them later. In between no one may
remove them, however old they are. So storing holds this lock, shared, from before the check until the transaction ends,
and a backup holds it from before its snapshot until its last blob is copied. The collector holds it alone for each
batch, and checks the references again once it has the lock. It never queues for it, because that would keep others
waiting behind it.
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, func, select
from sqlalchemy.orm import Session

_STORE = 7_230_515_913
_PAUSE_SECONDS = 0.01


def share_store(session: Session | Connection) -> None:
    """Shares the store until the transaction ends."""
    session.execute(select(func.pg_advisory_xact_lock_shared(_STORE)))


def share_store_until_closed(connection: Connection) -> None:
    """Shares the store until the connection is closed, over any number of transactions."""
    connection.execute(select(func.pg_advisory_lock_shared(_STORE)))
    connection.commit()


def own_store(connection: Connection, patience_seconds: float) -> bool:
    """Alone until the transaction ends; False when others held it for all of that time."""
    end = time.monotonic() + patience_seconds
    while not connection.execute(select(func.pg_try_advisory_xact_lock(_STORE))).scalar_one():
        if time.monotonic() >= end:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
