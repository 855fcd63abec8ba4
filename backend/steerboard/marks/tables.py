"""What people put on things of a project: tags, notes, the archive, favourites; and the views of lists that a project
keeps. Ids are unique over all tables, so one table serves runs, pipelines, models, datasets and evaluations."""

from __future__ import annotations

import uuid

from sqlalchemy import ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Json, Timestamp


class ItemMarks(Base):
    """Tags, notes and archive of one thing; a thing without any has no row. `type`: run, pipeline, model, dataset or
    evaluation."""

    __tablename__ = "item_marks"
    __table_args__ = (
        Index("ix_item_marks_project_id_type", "project_id", "type"),
        Index("ix_item_marks_tags", "tags", postgresql_using="gin"),
        Index("ix_item_marks_archived", "item_id", postgresql_where=text("archived_at IS NOT NULL")),
    )

    item_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    type: Mapped[str]
    tags: Mapped[list[str]] = mapped_column(ARRAY(TEXT), server_default=text("'{}'"))
    notes: Mapped[str] = mapped_column(server_default=text("''"))
    archived_at: Mapped[Timestamp | None]
    archived_by: Mapped[str | None]


class ItemComment(Base):
    """What someone wrote about one thing, in Markdown. `type`: as of marks; of an evaluation it is about its report."""

    __tablename__ = "item_comments"
    __table_args__ = (Index("ix_item_comments_item_id_id", "item_id", "id"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    type: Mapped[str]
    item_id: Mapped[uuid.UUID]
    text: Mapped[str]
    actor: Mapped[str]
    created_at: Mapped[CreatedAt]
    edited_at: Mapped[Timestamp | None]


class Favourite(Base):
    """A thing that one person marked for themselves. `owner`: `user:ID`, or `token:ID` of a token without a person."""

    __tablename__ = "favourites"
    __table_args__ = (Index("ix_favourites_item_id", "item_id"),)

    owner: Mapped[str] = mapped_column(primary_key=True)
    item_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    type: Mapped[str]


class SavedView(Base):
    """What a list shows, under a name: of runs a filter, a sort and columns, of samples the filters. `query` is the
    list's own schema."""

    __tablename__ = "saved_views"
    __table_args__ = (UniqueConstraint("project_id", "list", "name"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    list: Mapped[str] = mapped_column(server_default=text("'runs'"))
    name: Mapped[str]
    query: Mapped[Json]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
