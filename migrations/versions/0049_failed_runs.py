"""an index of the runs that failed, by when

Revision: 0049, after 0048c.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048c"
branch_labels = None
depends_on = None


def upgrade() -> None:
    failed = sa.text("state = 'failed' AND parent_id IS NULL")
    op.create_index("ix_runs_failed", "runs", ["project_id", "ended_at"], postgresql_where=failed)


def downgrade() -> None:
    op.drop_index("ix_runs_failed", table_name="runs")
