"""CPU threads of an attempt's stage

Revision: 0039, after 0038.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run_attempts", sa.Column("threads", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("run_attempts", "threads")
