"""Pending changes of rows, flags and comments. The rows of the dataset stay as they are."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import ForeignKey, Index, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Timestamp


class RowChange(Base):
    """What the next version will have in place of a row: `sample`, or nothing. `flips`: only the sides of a pair, or a
    thumb, are turned. `revision` is another one after each change: a change of an older one is refused.
    """

    __tablename__ = "row_changes"

    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True)
    sample: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    flips: Mapped[bool]
    revision: Mapped[uuid.UUID]
    actor: Mapped[str]
    changed_at: Mapped[Timestamp] = mapped_column(server_default=func.clock_timestamp())


class RowFlag(Base):
    """A row that someone should look at. `reason` may be empty."""

    __tablename__ = "row_flags"

    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True)
    reason: Mapped[str]
    actor: Mapped[str]
    created_at: Mapped[CreatedAt]


class RowComment(Base):
    """What someone wrote about a row, in Markdown."""

    __tablename__ = "row_comments"
    __table_args__ = (Index("ix_row_comments_dataset_id_row", "dataset_id", "row"),)

    id: Mapped[Id]
    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    row: Mapped[int]
    text: Mapped[str]
    actor: Mapped[str]
    created_at: Mapped[CreatedAt]
    edited_at: Mapped[Timestamp | None]
