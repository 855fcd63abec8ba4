"""Collections: single samples that people keep until they freeze them into a dataset."""

from __future__ import annotations

import uuid

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Json, Timestamp


class Collection(Base):
    """A growing list of samples of one kind, `instructions` or `preferences`. Its row is locked while it changes."""

    __tablename__ = "collections"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    kind: Mapped[str]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class CollectionDataset(Base):
    """A dataset that was frozen from a collection."""

    __tablename__ = "collection_datasets"

    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    collection_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("collections.id"), index=True)


class CollectionRow(Base):
    """One sample. A removed row stays, so that it can come back; `dataset_id` is the newest dataset that has it."""

    __tablename__ = "collection_rows"
    __table_args__ = (UniqueConstraint("collection_id", "place"),)

    id: Mapped[Id]
    collection_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("collections.id"))
    place: Mapped[int]
    sample: Mapped[Json]
    provenance: Mapped[Json | None]
    dataset_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"), index=True)
    actor: Mapped[str]
    created_at: Mapped[CreatedAt]
    removed_at: Mapped[Timestamp | None]
