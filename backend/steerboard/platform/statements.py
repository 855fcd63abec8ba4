"""Statements of the queue, handed to the driver as they are.

A hundred annotators are served each second by one process, and what SQLAlchemy does around a statement (coercions, the
cache of compiled ones, typed results) took it as long as the statement itself: as `session.execute(text(...))` a
submitted ranking takes 1.11 times the CPU (`make bench-ranking`). Errors and transactions stay SQLAlchemy's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import CursorResult
from sqlalchemy.orm import Session

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


class Statement:
    """SQL with parameters as `:name`; JSON comes back decoded."""

    def __init__(self, sql: str) -> None:
        self._sql = _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))

    def __call__(self, session: Session, given: Mapping[str, Any]) -> CursorResult[Any]:
        return session.connection().exec_driver_sql(self._sql, given)
