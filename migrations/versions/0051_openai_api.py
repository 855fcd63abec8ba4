"""files and fine-tuning jobs of OpenAI's API, and the tokens of a playground's prompt

Revision: 0051, after 0049b.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0051"
down_revision = "0049b"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "openai_files",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("artifact_hash", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id", name="pk_openai_files"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_openai_files_project_id_projects"),
        sa.ForeignKeyConstraint(["artifact_hash"], ["artifacts.hash"], name="fk_openai_files_artifact_hash_artifacts"),
    )
    op.create_index("ix_openai_files_project_id_id", "openai_files", ["project_id", "id"])
    op.create_index("ix_openai_files_artifact_hash", "openai_files", ["artifact_hash"])
    op.create_table(
        "fine_tuning_jobs",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("training_file", sa.Uuid(), nullable=False),
        sa.Column("plan", postgresql.JSONB(), nullable=False),
        sa.Column("settled", postgresql.JSONB(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("error", postgresql.JSONB(), nullable=True),
        sa.Column("import_id", sa.Uuid(), nullable=True),
        sa.Column("dataset_id", sa.Uuid(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('validating', 'started', 'failed', 'cancelled')", name=op.f("ck_fine_tuning_jobs_state")
        ),
        sa.PrimaryKeyConstraint("id", name="pk_fine_tuning_jobs"),
        sa.UniqueConstraint("run_id", name="uq_fine_tuning_jobs_run_id"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_fine_tuning_jobs_project_id_projects"),
        sa.ForeignKeyConstraint(
            ["import_id"], ["imports.id"], name="fk_fine_tuning_jobs_import_id_imports", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_fine_tuning_jobs_dataset_id_datasets", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_fine_tuning_jobs_run_id_runs", ondelete="CASCADE"),
    )
    for column in ("training_file", "import_id", "dataset_id"):
        op.create_index(f"ix_fine_tuning_jobs_{column}", "fine_tuning_jobs", [column])
    op.create_index("ix_fine_tuning_jobs_project_id_id", "fine_tuning_jobs", ["project_id", "id"])
    validating = sa.text("state = 'validating'")
    op.create_index("ix_fine_tuning_jobs_validating", "fine_tuning_jobs", ["id"], postgresql_where=validating)
    op.add_column("playground_answers", sa.Column("prompt_tokens", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("playground_answers", "prompt_tokens")
    op.drop_table("fine_tuning_jobs")
    op.drop_table("openai_files")
