"""Names in lower case, and an index that holds them: a search for a part of a name reads that index alone, and
compares bytes instead of letters."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Computed, Index
from sqlalchemy.orm import mapped_column


def name_lower() -> Any:
    """The column `name_lower` of a table with a `name`. Postgres fills it in."""
    return mapped_column(Computed("lower(name)", persisted=True), deferred=True)


def search_index(table: str) -> Index:
    return Index(f"ix_{table}_name_lower", "project_id", "id", postgresql_include=["name_lower"])
