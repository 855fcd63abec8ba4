"""Models, the manifests of their files in the artifact store, and endpoints that serve models elsewhere."""

from __future__ import annotations

import uuid
from typing import Any, get_args

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id, Json
from steerboard.platform.searched_names import name_lower, search_index
from steerboard_contracts.models import JUDGES, POLICIES, ModelRole


def _in_production(roles: frozenset[str]) -> str:
    named = ", ".join(f"'{role}'" for role in get_args(ModelRole) if role in roles)
    return f"stage = 'production' AND role IN ({named})"


class Artifact(Base):
    """A set of files in the artifact store: `manifest` = {"files": [{path, sha256, size}]}, `hash` its SHA-256."""

    __tablename__ = "artifacts"

    hash: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[BigInt]
    manifest: Mapped[Json]
    created_at: Mapped[CreatedAt]


class Model(Base):
    """A registry entry. `info` is the model's own steerboard.json (`steerboard_contracts.models.ModelInfo`).

    `stage` is where its newest promotion put it. The two indexes keep a project from ever having two policies, or two
    reward models, in production.
    """

    __tablename__ = "models"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        search_index("models"),
        CheckConstraint("stage IN ('candidate', 'production')", name="stage"),
        Index(
            "ix_models_production_policy",
            "project_id",
            unique=True,
            postgresql_where=text(_in_production(POLICIES)),
        ),
        Index(
            "ix_models_production_reward",
            "project_id",
            unique=True,
            postgresql_where=text(_in_production(JUDGES)),
        ),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    role: Mapped[str]
    method: Mapped[str | None]
    artifact_hash: Mapped[str] = mapped_column(ForeignKey("artifacts.hash"))
    parent_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id"))
    run_id: Mapped[uuid.UUID | None] = mapped_column(index=True)
    info: Mapped[Json]
    stage: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    name_lower: Mapped[str] = name_lower()


class ModelUpload(Base):
    """A model folder that someone uploads, file by file: `files` as in a manifest, `hash` that manifest's.

    `received` are the paths that have come. Once all have, it is an artifact. What another project stored never
    replaces a file.
    """

    __tablename__ = "model_uploads"
    __table_args__ = (UniqueConstraint("project_id", "hash"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    hash: Mapped[str]
    name: Mapped[str]
    files: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    received: Mapped[list[str]] = mapped_column(JSONB)
    artifact_hash: Mapped[str | None] = mapped_column(ForeignKey("artifacts.hash"), index=True)
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
    used_at: Mapped[CreatedAt]


class ModelPromotion(Base):
    """One move of a model to a stage, or out of every stage (null). Rows are only ever added.

    `replaced_by_id`: the model that took its place in production.
    """

    __tablename__ = "model_promotions"
    __table_args__ = (Index("ix_model_promotions_model_id_id", "model_id", "id"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    model_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"))
    stage: Mapped[str | None]
    note: Mapped[str]
    actor: Mapped[str]
    replaced_by_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id", ondelete="SET NULL"), index=True)
    created_at: Mapped[CreatedAt]


class Endpoint(Base):
    """An OpenAI-compatible server elsewhere. `model` is its own name for what it serves, `policy_model_id` the
    registry's model with the same weights, whose score format then holds. `guides`: the server takes guidance, as
    `steerboard models serve --guidance` starts it. The key is sealed, see `platform.security.secrets`.
    """

    __tablename__ = "endpoints"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    base_url: Mapped[str]
    model: Mapped[str]
    api_key_sealed: Mapped[str | None]
    policy_model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id"), index=True)
    guides: Mapped[bool] = mapped_column(server_default=text("false"), default=False)
    created_at: Mapped[CreatedAt]
