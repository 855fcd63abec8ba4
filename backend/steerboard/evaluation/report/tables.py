"""Links that show a report to someone without an account."""

from __future__ import annotations

import uuid

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Timestamp


class ReportLink(Base):
    """A link to read the report of an evaluation, stored as a SHA-256 of its 32 random bytes."""

    __tablename__ = "report_links"

    id: Mapped[Id]
    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), index=True)
    code_hash: Mapped[str] = mapped_column(unique=True)
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[Timestamp]
    revoked_at: Mapped[Timestamp | None]
