"""The events of projects. A project's row must be there: `accounts.tables`."""

from __future__ import annotations

import uuid

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Json


class EventStream(Base):
    """The counter of a project's events. Its row is locked while an event is added, so ids commit in order."""

    __tablename__ = "event_streams"

    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    last_id: Mapped[int]


class Event(Base):
    """One thing that happened in a project, as the live stream replays it."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_created_at", "created_at"),)

    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    id: Mapped[int] = mapped_column(primary_key=True)
    type: Mapped[str]
    payload: Mapped[Json]
    created_at: Mapped[CreatedAt]
