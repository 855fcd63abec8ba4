"""accounts: sign-in attempts, since when members belong, the audit log page by page

Revision: 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sign_in_attempts",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("user_name", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_attempts")),
    )
    op.create_index("ix_sign_in_attempts_user_name_created_at", "sign_in_attempts", ["user_name", "created_at"])
    op.create_index("ix_sign_in_attempts_address_created_at", "sign_in_attempts", ["address", "created_at"])
    op.add_column(
        "memberships",
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
    )
    op.create_index("ix_audit_log_project_id_id", "audit_log", ["project_id", "id"])
    op.drop_index("ix_audit_log_project_id", table_name="audit_log")


def downgrade() -> None:
    op.create_index("ix_audit_log_project_id", "audit_log", ["project_id"])
    op.drop_index("ix_audit_log_project_id_id", table_name="audit_log")
    op.drop_column("memberships", "created_at")
    op.drop_table("sign_in_attempts")
