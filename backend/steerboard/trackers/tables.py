"""Trackers of projects, and how far each run has been exported to them."""

from __future__ import annotations

import uuid

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Json, Timestamp


class Tracker(Base):
    """Another system that a project's runs are exported to while they run.

    `settings`: `schemas.TrackerSettings`. `secret_sealed`: sealed (`platform.security.secrets`). `lease_owner` is the
    exporter that is at it (`platform.leases`), and alone writes; `failures` of the last attempts in a row, after which
    it waits until `next_look_at`.
    """

    __tablename__ = "trackers"
    __table_args__ = (
        CheckConstraint("kind IN ('mlflow', 'wandb', 'tensorboard', 'trackio')", name="kind"),
        UniqueConstraint("project_id", "name"),
        Index("ix_trackers_due", "next_look_at", postgresql_where=text("active")),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    kind: Mapped[str]
    settings: Mapped[Json]
    run_kinds: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    secret_sealed: Mapped[str | None]
    active: Mapped[bool]
    attempt: Mapped[int] = mapped_column(server_default=text("0"))
    lease_owner: Mapped[uuid.UUID | None]
    lease_expires_at: Mapped[Timestamp | None]
    next_look_at: Mapped[CreatedAt]
    failures: Mapped[int] = mapped_column(server_default=text("0"))
    last_error: Mapped[str | None]
    last_export_at: Mapped[Timestamp | None]
    created_at: Mapped[CreatedAt]


class RunExport(Base):
    """How far a run has got to a tracker.

    `confirmed_step`: nothing up to it is lost any more; what follows is sent again after a crash. `sent_step`: the
    newest step that the tracker was given. `ended_at`: that of the run when its end was exported, so that a run which
    is resumed is exported on.
    """

    __tablename__ = "run_exports"
    __table_args__ = (Index("ix_run_exports_run_id", "run_id"),)

    tracker_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("trackers.id", ondelete="CASCADE"), primary_key=True)
    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    remote: Mapped[str | None]
    link: Mapped[str | None]
    folder: Mapped[str | None]
    confirmed_step: Mapped[int | None]
    sent_step: Mapped[int | None]
    ended_at: Mapped[Timestamp | None]
    failures: Mapped[int] = mapped_column(server_default=text("0"))
    next_attempt_at: Mapped[Timestamp | None]
    last_error: Mapped[str | None]
    last_export_at: Mapped[Timestamp | None]
    created_at: Mapped[CreatedAt]
