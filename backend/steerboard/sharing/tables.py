"""Links that show a page to someone without an account."""

from __future__ import annotations

import uuid

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Json, Timestamp


class ShareLink(Base):
    """A link to read one page, stored as a SHA-256 of its 32 random bytes. `kind`: `report`, the current report of
    `evaluation_id`; `runs` and `answers`, the frozen `page`. `title`: what it shows, for those who revoke it."""

    __tablename__ = "share_links"
    __table_args__ = (
        CheckConstraint("kind IN ('report', 'runs', 'answers')", name="kind"),
        CheckConstraint("num_nonnulls(evaluation_id, page) = 1", name="one_page"),
        Index("ix_share_links_project_id_kind", "project_id", "kind"),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    kind: Mapped[str]
    title: Mapped[str]
    evaluation_id: Mapped[uuid.UUID | None] = mapped_column(
        ForeignKey("evaluations.id", ondelete="CASCADE"), index=True
    )
    page: Mapped[Json | None] = mapped_column(JSONB(none_as_null=True))
    code_hash: Mapped[str] = mapped_column(unique=True)
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[Timestamp]
    revoked_at: Mapped[Timestamp | None]
