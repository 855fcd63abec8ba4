"""which kind of device an attempt ran on

Revision: 0040, after 0039.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run_attempts", sa.Column("device", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("run_attempts", "device")
