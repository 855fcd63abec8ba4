"""Imports in several steps: a file that was uploaded, what to make of it, and how far that has come."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from sqlalchemy import BigInteger, DateTime, ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Json

# An import that waits for a process or is being worked on; only these have a lease.
WORKING = ("validating", "importing")


class ImportUpload(Base):
    """A file that comes in parts, announced by its SHA-256. The parts are files of the import store, below its id."""

    __tablename__ = "import_uploads"
    __table_args__ = (UniqueConstraint("project_id", "created_by", "sha256", "size"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    file_name: Mapped[str]
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class Import(Base):
    """`files`: [{label, size}], stored as 0, 1, ... in the import's folder; those of a hub dataset when first read.

    `options` are the person's choices, `detected` what the columns look like without them. A working row belongs to
    `lease_owner`, who may write it; without one, or past `lease_expires_at`, anyone may claim it. `bad_file` names
    the file of all bad rows that belongs to `report`.
    """

    __tablename__ = "imports"
    __table_args__ = (
        Index("ix_imports_project_id_id", "project_id", "id"),
        Index("ix_imports_working", "lease_expires_at", postgresql_where=text("state IN ('validating', 'importing')")),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    file_name: Mapped[str]
    hub: Mapped[str | None]
    files: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    files_gone: Mapped[bool]
    size: Mapped[int] = mapped_column(BigInteger)
    format: Mapped[str]
    state: Mapped[str]
    columns: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    options: Mapped[Json]
    detected: Mapped[Json | None]
    effective: Mapped[Json | None]
    problem: Mapped[Json | None]
    progress: Mapped[Json | None]
    report: Mapped[Json | None]
    bad_file: Mapped[str | None]
    dataset_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"))
    attempt: Mapped[int]
    lease_owner: Mapped[uuid.UUID | None]
    lease_expires_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True))
    created_by: Mapped[str]
    started_by: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[dt.datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.clock_timestamp(), onupdate=func.clock_timestamp()
    )
