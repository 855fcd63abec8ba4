"""files of imports that come in parts

Revision: 0049b, after 0049.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0049b"
down_revision = "0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "import_uploads",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("project_id", sa.Uuid(), sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("file_name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.UniqueConstraint("project_id", "created_by", "sha256", "size"),
    )


def downgrade() -> None:
    op.drop_table("import_uploads")
