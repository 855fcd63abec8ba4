"""comments on runs and other things; how many bytes a project may keep

Revision: 0054, after 0053.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "item_comments",
        sa.Column("id", UUID(as_uuid=True), primary_key=True),
        sa.Column("project_id", UUID(as_uuid=True), sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("item_id", UUID(as_uuid=True), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.clock_timestamp(), nullable=False),
        sa.Column("edited_at", sa.DateTime(timezone=True), nullable=True),
    )
    op.create_index("ix_item_comments_item_id_id", "item_comments", ["item_id", "id"])
    op.add_column("row_comments", sa.Column("edited_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("projects", sa.Column("storage_bytes_quota", sa.BigInteger(), nullable=True))
    op.add_column("datasets", sa.Column("bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("datasets", "bytes")
    op.drop_column("projects", "storage_bytes_quota")
    op.drop_column("row_comments", "edited_at")
    op.drop_table("item_comments")
