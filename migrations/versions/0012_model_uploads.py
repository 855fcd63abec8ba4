"""model folders that are uploaded, file by file

Revision: 0012, after 0011.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_uploads",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("files", postgresql.JSONB(), nullable=False),
        sa.Column("received", postgresql.JSONB(), nullable=False),
        sa.Column("artifact_hash", sa.String(), nullable=True),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("used_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(["artifact_hash"], ["artifacts.hash"], name=op.f("fk_model_uploads_artifact_hash")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_model_uploads_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_uploads")),
        sa.UniqueConstraint("project_id", "hash", name=op.f("uq_model_uploads_project_id_hash")),
    )
    op.create_index(op.f("ix_model_uploads_artifact_hash"), "model_uploads", ["artifact_hash"], unique=False)


def downgrade() -> None:
    op.drop_table("model_uploads")
