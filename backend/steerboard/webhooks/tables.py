"""Webhooks, and what is sent to them."""

from __future__ import annotations

import uuid

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Json, Timestamp


class Webhook(Base):
    """A URL that gets an event when a run or pipeline ends.
    The signing secret is sealed (`platform.security.secrets`)."""

    __tablename__ = "webhooks"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    url: Mapped[str]
    events: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    secret_sealed: Mapped[str]
    active: Mapped[bool]
    created_at: Mapped[CreatedAt]


class WebhookDelivery(Base):
    """One message, sent until it arrives or `tries_left` is used up.

    `lease_owner` is the sender that is at it (`platform.leases`), and alone records the outcome. `attempt` counts all
    that were begun.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        CheckConstraint("state IN ('pending', 'delivered', 'failed')", name="state"),
        Index("ix_webhook_deliveries_webhook_id_id", "webhook_id", "id"),
        Index("ix_webhook_deliveries_due", "next_attempt_at", postgresql_where=text("state = 'pending'")),
    )

    id: Mapped[Id]
    webhook_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Mapped[str]
    payload: Mapped[Json]
    state: Mapped[str]
    attempt: Mapped[int]
    tries_left: Mapped[int]
    next_attempt_at: Mapped[Timestamp | None]
    lease_owner: Mapped[uuid.UUID | None]
    lease_expires_at: Mapped[Timestamp | None]
    last_status: Mapped[int | None]
    last_error: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    delivered_at: Mapped[Timestamp | None]
