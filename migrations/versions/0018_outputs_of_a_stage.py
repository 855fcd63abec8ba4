"""an input may be a further output of its upstream run

Revision: 0018, after 0017.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run_inputs", sa.Column("upstream_output", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("run_inputs", "upstream_output")
