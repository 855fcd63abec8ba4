"""Equal requests, one at a time: several judges of a project may be at work, and none pays for what another is asking.

Held in Postgres by one connection of the process, so all of it is free again when the process has died.
"""

from __future__ import annotations

import threading
import uuid
from contextlib import suppress

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

_TAKE = text("SELECT pg_try_advisory_lock(hashtextextended(:name, 0))")
_FREE = text("SELECT pg_advisory_unlock(hashtextextended(:name, 0))")


class RequestLocks:
    """Locks of requests. Without the database all proceed: requests sent twice are paid for twice, but none stalls."""

    def __init__(self, engine: Engine, project_id: uuid.UUID) -> None:
        self._engine = engine
        self._project_id = project_id
        self._connection: Connection | None = None
        self._taken: set[str] = set()
        self._lock = threading.Lock()

    def take(self, key: str) -> bool:
        """Whether no one else is asking this now. What was taken is to be freed."""
        with self._lock:
            if key in self._taken:
                return False
            try:
                if self._connection is None:
                    self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                free = bool(self._connection.scalar(_TAKE, {"name": self._name(key)}))
            except SQLAlchemyError:
                self._forget()
                free = True
            if free:
                self._taken.add(key)
            return free

    def free(self, key: str) -> None:
        """What was not taken stays as it is."""
        with self._lock:
            if key not in self._taken:
                return
            self._taken.remove(key)
            if self._connection is None:
                return
            try:
                self._connection.execute(_FREE, {"name": self._name(key)})
            except SQLAlchemyError:
                self._forget()

    def close(self) -> None:
        with self._lock:
            self._forget()

    def _name(self, key: str) -> str:
        return f"judge request {self._project_id} {key}"

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):
                connection.invalidate()
            with suppress(SQLAlchemyError):
                connection.close()
