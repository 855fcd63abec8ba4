"""notices in the dashboard, and how far each person has read them

Revision: 0059, after 0058.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notices",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("once", sa.String()),
        sa.Column("data", postgresql.JSONB(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_notices_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
    )
    op.create_index("ix_notices_project_id_id", "notices", ["project_id", "id"])
    op.create_index("ix_notices_created_at", "notices", ["created_at"])
    op.create_index(
        "ix_notices_once",
        "notices",
        ["project_id", "once"],
        unique=True,
        postgresql_where=sa.text("once IS NOT NULL"),
    )
    op.create_table(
        "notice_reads",
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_notice_reads_project_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_notice_reads_user_id")),
        sa.PrimaryKeyConstraint("project_id", "user_id", name=op.f("pk_notice_reads")),
    )


def downgrade() -> None:
    op.drop_table("notice_reads")
    op.drop_table("notices")
