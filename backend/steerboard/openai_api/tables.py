"""Uploaded files, and fine-tuning jobs: each an import where its file is no dataset yet, then an ordinary run."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id, Json, Timestamp


class OpenAIFile(Base):
    """Its content is an artifact of one file. A deleted one has no row; what was made of it stays."""

    __tablename__ = "openai_files"
    __table_args__ = (Index("ix_openai_files_project_id_id", "project_id", "id"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    purpose: Mapped[str]
    size: Mapped[BigInt]
    artifact_hash: Mapped[str] = mapped_column(ForeignKey("artifacts.hash"), index=True)
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class FineTuningJob(Base):
    """`state` until it has a run, whose state then counts: `validating` while its file is imported.

    `plan`: what its run will be (`jobs.plan.JobPlan`), which needs the size of the dataset. `settled`: the
    hyperparameters that `auto` came to. `training_file` outlives the file. A job is deleted with its run.
    """

    __tablename__ = "fine_tuning_jobs"
    __table_args__ = (
        CheckConstraint("state IN ('validating', 'started', 'failed', 'cancelled')", name="state"),
        Index("ix_fine_tuning_jobs_project_id_id", "project_id", "id"),
        Index("ix_fine_tuning_jobs_validating", "id", postgresql_where=text("state = 'validating'")),
        Index("ix_fine_tuning_jobs_training_file", "training_file"),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    model: Mapped[str]
    training_file: Mapped[uuid.UUID]
    plan: Mapped[Json]
    settled: Mapped[Json | None]
    seed: Mapped[BigInt]
    # `metadata` is a name of SQLAlchemy's.
    labels: Mapped[dict[str, Any] | None] = mapped_column("metadata", JSONB(none_as_null=True))
    state: Mapped[str]
    error: Mapped[Json | None]
    import_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("imports.id", ondelete="SET NULL"), index=True)
    dataset_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"), index=True)
    run_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), unique=True)
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
    ended_at: Mapped[Timestamp | None]
