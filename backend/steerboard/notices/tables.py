"""Notices in the dashboard, notice rules, and what was sent by them."""

from __future__ import annotations

import uuid

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id, Json, Timestamp


class Notice(Base):
    """An event that members of a project see in the dashboard. Ids of a project are committed in their order.

    `data` is what a delivery's payload has, with `path`, of the page below the project's, instead of `url`. `once`: as
    of `NoticeDelivery`.
    """

    __tablename__ = "notices"
    __table_args__ = (
        Index("ix_notices_project_id_id", "project_id", "id"),
        Index("ix_notices_created_at", "created_at"),
        Index("ix_notices_once", "project_id", "once", unique=True, postgresql_where=text("once IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    event: Mapped[str]
    once: Mapped[str | None]
    data: Mapped[Json]
    created_at: Mapped[CreatedAt]


class NoticeRead(Base):
    """How far a person has read the notices of a project."""

    __tablename__ = "notice_reads"

    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"), primary_key=True)
    until: Mapped[BigInt]


class NoticeRule(Base):
    """Which events of a project are reported to whom, and when.

    `secret_sealed` is sealed (`platform.security.secrets`): the signing secret of a webhook, the address of a Slack
    channel, of which `url` is only the part that may be shown. `recipients`: of e-mail. `schedule`: `schemas.Schedule`.
    """

    __tablename__ = "notice_rules"
    __table_args__ = (
        CheckConstraint("channel IN ('webhook', 'slack', 'email')", name="channel"),
        UniqueConstraint("project_id", "name"),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    channel: Mapped[str] = mapped_column(server_default=text("'webhook'"))
    url: Mapped[str | None]
    recipients: Mapped[list[str]] = mapped_column(ARRAY(TEXT), server_default=text("'{}'"))
    events: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    schedule: Mapped[Json] = mapped_column(server_default=text("'{}'"))
    secret_sealed: Mapped[str | None]
    active: Mapped[bool]
    created_at: Mapped[CreatedAt]


class NoticeDelivery(Base):
    """One event for one rule, sent until it arrives or `tries_left` is used up.

    `lease_owner` is the sender that is at it (`platform.leases`), and alone records the outcome. `attempt` counts all
    that were begun. `once`: names what is reported a single time; None for events that happen again.
    """

    __tablename__ = "notice_deliveries"
    __table_args__ = (
        CheckConstraint("state IN ('pending', 'delivered', 'failed')", name="state"),
        Index("ix_notice_deliveries_rule_id_id", "rule_id", "id"),
        Index("ix_notice_deliveries_due", "next_attempt_at", postgresql_where=text("state = 'pending'")),
        Index("ix_notice_deliveries_once", "rule_id", "once", unique=True, postgresql_where=text("once IS NOT NULL")),
    )

    id: Mapped[Id]
    rule_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("notice_rules.id", ondelete="CASCADE"))
    event: Mapped[str]
    once: Mapped[str | None]
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
