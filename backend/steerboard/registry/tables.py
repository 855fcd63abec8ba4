"""Models, and the manifests of their files in the artifact store."""

from __future__ import annotations

import uuid

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id, Json


class Artifact(Base):
    """A set of files in the artifact store: `manifest` = {"files": [{path, sha256, size}]}, `hash` its SHA-256."""

    __tablename__ = "artifacts"

    hash: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[BigInt]
    manifest: Mapped[Json]
    created_at: Mapped[CreatedAt]


class Model(Base):
    """A registry entry. `info` is the model's own steerboard.json (`steerboard_contracts.models.ModelInfo`)."""

    __tablename__ = "models"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    role: Mapped[str]
    method: Mapped[str | None]
    artifact_hash: Mapped[str] = mapped_column(ForeignKey("artifacts.hash"))
    parent_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id"))
    run_id: Mapped[uuid.UUID | None] = mapped_column(index=True)
    info: Mapped[Json]
    created_at: Mapped[CreatedAt]
