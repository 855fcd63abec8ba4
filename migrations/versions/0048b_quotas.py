"""how many device-hours a project may use in a month

Revision: 0048b, after 0048.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0048b"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("device_hours_quota", sa.Float(), nullable=True))
    op.create_index("ix_run_attempts_ended_at", "run_attempts", ["ended_at"])


def downgrade() -> None:
    op.drop_index("ix_run_attempts_ended_at", "run_attempts")
    op.drop_column("projects", "device_hours_quota")
